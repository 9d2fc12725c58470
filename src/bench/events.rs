//! Made-up events: what one says follows from its number, so that it can be sent again.

use std::io::Write as _;

use crate::config::{BenchFormat, BenchIngestSettings};
use crate::domain::{EventTime, Span};

const MILLIS_OF_MINUTE: u64 = 60_000;

/// What all connections of one run have in common.
#[derive(Debug)]
pub(super) struct Recipe {
    /// Begins every event id of the run, and none of another.
    pub(super) id_prefix: String,
    settings: BenchIngestSettings,
    /// The seconds of the minute before the run, without the `Z`.
    seconds: Vec<String>,
    late_seconds: Vec<String>,
}

impl Recipe {
    pub(super) fn of(settings: &BenchIngestSettings, now: EventTime) -> Self {
        let run = uuid::Uuid::new_v4().simple().to_string();
        let minute_before = |end: EventTime| -> Vec<String> {
            let whole = end.floor_to(Span::from_micros(1_000_000), Span::ZERO);
            (1..=60)
                .map(|second| whole.minus(Span::from_micros(second * 1_000_000)).to_string())
                .map(|time| time.trim_end_matches('Z').to_owned())
                .collect()
        };
        Self {
            id_prefix: format!("bench-{}-", &run[..12]),
            settings: settings.clone(),
            seconds: minute_before(now),
            late_seconds: minute_before(now.minus(settings.late_by)),
        }
    }

    pub(super) const fn content_type(&self) -> &'static str {
        match self.settings.format {
            BenchFormat::Json => "application/json",
            BenchFormat::NdJson => "application/x-ndjson",
        }
    }

    /// Connection and number of an event with this id, if it is one of this run.
    pub(super) fn numbers_of(&self, event_id: &str) -> Option<(usize, u64)> {
        let (connection, number) = event_id.strip_prefix(&self.id_prefix)?.split_once('-')?;
        Some((connection.parse().ok()?, number.parse().ok()?))
    }

    fn write_event(&self, connection: u16, number: u64, body: &mut Vec<u8>) {
        let drawn = mixed(u64::from(connection) << 40 | number);
        let is_late = self.settings.late.holds(drawn);
        let seconds = if is_late { &self.late_seconds } else { &self.seconds };
        let millis = number % MILLIS_OF_MINUTE;
        let second = usize::try_from(millis / 1_000).ok().and_then(|second| seconds.get(second));
        let (second, millis) = (second.map_or("", String::as_str), millis % 1_000);
        let till = mixed(drawn) % u64::from(self.settings.tills);
        let (store, cents, prefix) = (till % 20, drawn % 10_000, &self.id_prefix);
        // Writing to a vector cannot fail.
        let _ = write!(
            body,
            "{{\"event_id\":\"{prefix}{connection}-{number}\",\"order_id\":\"{connection}-{number}\",\
             \"status\":\"placed\",\"amount\":\"{}.{:02}\",\"event_time\":\"{second}.{millis:03}Z\",\
             \"store_id\":\"S{store}\",\"till_id\":\"till-{till}\"}}",
            cents / 100,
            cents % 100,
        );
    }
}

/// A request that is ready to be sent, as often as needed.
#[derive(Debug, Clone)]
pub(super) struct Request {
    pub(super) body: Vec<u8>,
    pub(super) events: u32,
    /// The numbers of the events that were not sent before.
    pub(super) fresh: std::ops::Range<u64>,
}

/// The events of one connection, in their order.
#[derive(Debug)]
pub(super) struct Events<'run> {
    recipe: &'run Recipe,
    connection: u16,
    /// The number of the next event that was not sent before.
    next: u64,
    /// How many were drawn, those sent before included.
    drawn: u64,
}

impl<'run> Events<'run> {
    pub(super) const fn of(recipe: &'run Recipe, connection: u16) -> Self {
        Self { recipe, connection, next: 0, drawn: 0 }
    }

    /// The next `events` events as one body.
    pub(super) fn request(&mut self, events: u32) -> Request {
        let format = self.recipe.settings.format;
        let (open, between, close): (&[u8], &[u8], &[u8]) = match format {
            BenchFormat::Json if events == 1 => (b"", b"", b""),
            BenchFormat::Json => (b"[", b",", b"]"),
            BenchFormat::NdJson => (b"", b"\n", b"\n"),
        };
        let first = self.next;
        let mut body = Vec::with_capacity(256 * usize::try_from(events).unwrap_or(1));
        body.extend_from_slice(open);
        for index in 0..events {
            if index > 0 {
                body.extend_from_slice(between);
            }
            let number = self.draw(first);
            self.recipe.write_event(self.connection, number, &mut body);
        }
        body.extend_from_slice(close);
        Request { body, events, fresh: first..self.next }
    }

    /// The number of an event that was sent with an earlier request, or of a new one.
    fn draw(&mut self, sent: u64) -> u64 {
        self.drawn += 1;
        let drawn = mixed(self.drawn ^ u64::from(self.connection) << 48);
        if sent > 0 && self.recipe.settings.duplicates.holds(drawn) {
            return mixed(drawn) % sent;
        }
        let number = self.next;
        self.next += 1;
        number
    }
}

/// A number that looks drawn, from one that is counted (SplitMix64, Steele et al. 2014).
const fn mixed(number: u64) -> u64 {
    let mixed = number.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::CommandLine;
    use clap::{CommandFactory as _, FromArgMatches as _};

    fn recipe(arguments: &str) -> Recipe {
        let line = format!("tillmark bench ingest {arguments}");
        let matches = CommandLine::command().try_get_matches_from(line.split_whitespace()).unwrap();
        let (_, bench) = matches.subcommand().unwrap();
        let (_, ingest) = bench.subcommand().unwrap();
        let settings = BenchIngestSettings::from_arg_matches(ingest).unwrap();
        Recipe::of(&settings, "2026-10-01T09:05:00.5Z".parse().unwrap())
    }

    #[test]
    fn the_shares_are_what_was_asked_for_and_a_repeated_event_says_the_same() {
        let recipe = recipe("--duplicates 10% --late 5% --late-by PT2H --format ndjson");
        let mut events = Events::of(&recipe, 7);
        let (mut lines, mut repeated, mut late) = (std::collections::HashMap::new(), 0, 0);
        for _ in 0..1_000 {
            let request = events.request(10);
            for line in String::from_utf8(request.body.to_vec()).unwrap().lines() {
                let event: serde_json::Value = serde_json::from_str(line).unwrap();
                let id = event["event_id"].as_str().unwrap().to_owned();
                assert_eq!(recipe.numbers_of(&id).unwrap().0, 7);
                late += usize::from(event["event_time"].as_str().unwrap().contains("T07:0"));
                if let Some(before) = lines.insert(id, line.to_owned()) {
                    assert_eq!(before, line);
                    repeated += 1;
                }
            }
        }
        assert_eq!(events.next, lines.len() as u64);
        assert!((900..1_100).contains(&repeated), "{repeated}");
        assert!((400..600).contains(&late), "{late}");
    }

    #[test]
    fn one_event_is_an_object_and_several_are_an_array() {
        let recipe = recipe("--tills 1");
        let mut events = Events::of(&recipe, 0);
        let json = |request: &Request| -> serde_json::Value {
            serde_json::from_slice(&request.body).unwrap()
        };
        let (one, three) = (events.request(1), events.request(3));
        assert!(json(&one).is_object());
        assert_eq!((json(&three).as_array().unwrap().len(), three.fresh), (3, 1..4));
    }
}
