//! Prometheus' text format, version 0.0.4, read strictly: what a scraper may refuse fails here.

use std::collections::{BTreeMap, BTreeSet};

/// A name with the labels behind it, as they stand.
pub type Series = String;

/// One family of a scrape.
#[derive(Debug, Default)]
pub struct Family {
    pub kind: String,
    pub help: String,
    pub samples: BTreeMap<Series, f64>,
}

/// A whole scrape, family by family.
#[derive(Debug)]
pub struct Scrape(pub BTreeMap<String, Family>);

impl Scrape {
    /// Reads a text.
    ///
    /// Panics where it breaks a rule: every line is a sample or the help or type of a family; each family has
    /// both, once, before its samples, which stand together; no series comes twice; names, labels and
    /// escapes are as the format wants them; counters end in `_total` and are not negative; histograms have
    /// ascending buckets up to `+Inf`, which is the count.
    pub fn read(text: &str) -> Self {
        assert!(text.ends_with('\n'), "the last line does not end");
        let mut families: Vec<(String, Family)> = Vec::new();
        for line in text.lines() {
            if let Some(rest) = line.strip_prefix("# HELP ") {
                let (name, help) = rest.split_once(' ').unwrap_or((rest, ""));
                assert!(is_name(name, true) && !help.is_empty(), "{line}");
                assert!(families.iter().all(|(known, _)| known != name), "{name} comes twice");
                let family = Family { help: unescaped(help, false), ..Family::default() };
                families.push((name.to_owned(), family));
            } else if let Some(rest) = line.strip_prefix("# TYPE ") {
                let (name, kind) = rest.split_once(' ').expect(line);
                let (last, family) = families.last_mut().expect("no help before the first type");
                assert_eq!(last, name, "the type is not of the family before it: {line}");
                assert!(family.kind.is_empty() && family.samples.is_empty(), "{line}");
                assert!(["counter", "gauge", "histogram", "summary"].contains(&kind), "{line}");
                kind.clone_into(&mut family.kind);
            } else {
                let (series, value) = sample(line);
                let (name, family) = families.last_mut().expect("no family before a sample");
                assert!(belongs(&series, name, &family.kind), "{line} does not belong to {name}");
                let before = family.samples.insert(series, value);
                assert!(before.is_none(), "{line} comes twice");
            }
        }
        for (name, family) in &families {
            family.check(name);
        }
        Self(families.into_iter().collect())
    }

    /// The value of a series, whose labels stand as they do in the text.
    pub fn value(&self, series: &str) -> f64 {
        let found = self.0.values().find_map(|family| family.samples.get(series));
        *found.unwrap_or_else(|| panic!("{series} is not in {:#?}", self.0))
    }

    /// Whether there is such a series.
    pub fn has(&self, series: &str) -> bool {
        self.0.values().any(|family| family.samples.contains_key(series))
    }

    /// All series.
    pub fn series(&self) -> impl Iterator<Item = &str> {
        self.0.values().flat_map(|family| family.samples.keys().map(String::as_str))
    }
}

impl Family {
    fn check(&self, name: &str) {
        assert!(!self.kind.is_empty(), "{name} has no type");
        assert!(self.help.ends_with('.'), "{name}: {}", self.help);
        if self.kind == "counter" {
            assert!(name.ends_with("_total"), "{name} is a counter");
            assert!(self.samples.values().all(|value| *value >= 0.0), "{name} is below zero");
        } else {
            assert!(!name.ends_with("_total"), "{name} is no counter");
        }
        if self.kind == "histogram" {
            self.check_histogram(name);
        }
    }

    fn check_histogram(&self, name: &str) {
        let mut buckets: BTreeMap<String, Vec<(f64, f64)>> = BTreeMap::new();
        for (series, value) in &self.samples {
            let Some(labels) = series.strip_prefix(&format!("{name}_bucket{{")) else { continue };
            let (others, bound) = labels.rsplit_once("le=\"").expect(series);
            let bound = bound.trim_end_matches("\"}");
            let bound = if bound == "+Inf" { f64::INFINITY } else { bound.parse().expect(series) };
            buckets
                .entry(others.trim_end_matches(',').to_owned())
                .or_default()
                .push((bound, *value));
        }
        for (labels, mut buckets) in buckets {
            buckets.sort_by(|one, other| one.0.total_cmp(&other.0));
            assert!(buckets.is_sorted_by(|one, other| one.1 <= other.1), "{name}{{{labels}}}");
            let braced = if labels.is_empty() { String::new() } else { format!("{{{labels}}}") };
            let count = self.samples[&format!("{name}_count{braced}")];
            assert_eq!(buckets.last(), Some(&(f64::INFINITY, count)), "{name}{braced}");
            assert!(self.samples.contains_key(&format!("{name}_sum{braced}")), "{name}{braced}");
        }
    }
}

/// Whether a series may stand in a family.
fn belongs(series: &str, family: &str, kind: &str) -> bool {
    let name = series.split('{').next().unwrap_or_default();
    let ending = name.strip_prefix(family);
    let has_bound = series.contains("le=\"");
    match (kind, ending) {
        ("histogram", Some("_bucket")) => has_bound,
        ("histogram" | "summary", Some("_sum" | "_count")) | ("counter" | "gauge", Some("")) => {
            !has_bound
        }
        _ => false,
    }
}

/// A line as its series and its value. There are no timestamps.
fn sample(line: &str) -> (Series, f64) {
    let (series, value) = line.rsplit_once(' ').expect(line);
    let (name, labels) = match series.split_once('{') {
        Some((name, labels)) => (name, Some(labels.strip_suffix('}').expect(line))),
        None => (series, None),
    };
    assert!(is_name(name, true), "{line}");
    if let Some(labels) = labels {
        check_labels(labels);
    }
    (series.to_owned(), value.parse().expect(line))
}

/// `name="value",…`, each name once.
fn check_labels(mut labels: &str) {
    let (whole, mut names) = (labels, BTreeSet::new());
    loop {
        let (name, rest) = labels.split_once("=\"").expect(whole);
        assert!(is_name(name, false) && names.insert(name), "{whole}");
        let mut escaped = false;
        let end = rest.find(|character| {
            let ends = character == '"' && !escaped;
            escaped = character == '\\' && !escaped;
            ends
        });
        let (value, rest) = rest.split_at(end.expect(whole));
        unescaped(value, true);
        match &rest[1..] {
            "" => return,
            more => labels = more.strip_prefix(',').expect(whole),
        }
    }
}

/// A text without its escapes: `\\`, `\n`, and in labels `\"`.
fn unescaped(text: &str, is_label: bool) -> String {
    let (mut plain, mut characters) = (String::new(), text.chars());
    while let Some(character) = characters.next() {
        plain.push(match (character, is_label) {
            ('\\', _) => match characters.next() {
                Some('\\') => '\\',
                Some('n') => '\n',
                Some('"') if is_label => '"',
                other => panic!("`\\{other:?}` is no escape: {text}"),
            },
            ('"', true) => panic!("a quotation mark that is not escaped: {text}"),
            (character, _) => character,
        });
    }
    plain
}

/// A name of a family, or else of a label.
fn is_name(name: &str, of_family: bool) -> bool {
    let starts =
        |byte: u8| byte.is_ascii_alphabetic() || byte == b'_' || (of_family && byte == b':');
    let goes_on = |byte: u8| starts(byte) || byte.is_ascii_digit();
    name.bytes().next().is_some_and(starts)
        && name.bytes().all(goes_on)
        && (of_family || !name.starts_with("__"))
}
