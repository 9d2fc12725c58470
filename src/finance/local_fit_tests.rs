use super::*;

fn calendar(granularity: &str, zone: &str, day_start: &str) -> Calendar {
    Calendar {
        granularity: granularity.parse().expect("a granularity"),
        zone: zone.parse().expect("a zone"),
        day_start: day_start.parse().expect("a start"),
    }
}

fn time(text: &str) -> EventTime {
    text.parse().expect(text)
}

fn windows(size: &str, offset: &str) -> Foldable {
    let (size, offset) = (size.parse().expect("a span"), offset.parse().expect("a span"));
    Foldable::of(WindowSpec::Tumbling { size, offset }).expect("tumbling")
}

#[test]
fn windows_that_lie_across_a_boundary_do_not_fold_and_those_that_would_are_named() {
    let year = ("2026-01-01T00:00:00Z", "2027-01-01T00:00:00Z");
    let century = ("1950-01-01T00:00:00Z", "2150-01-01T00:00:00Z");
    let none = None::<(&str, Option<&str>)>;
    for (case, (size, offset), (granularity, zone, day_start), (from, to), expected) in [
        (
            "hours, whole hours beside UTC",
            ("1 hour", "0 seconds"),
            ("P1D", "Europe/Lisbon", "00:00"),
            century,
            none,
        ),
        (
            "hours and months",
            ("1 hour", "0 seconds"),
            ("P1M", "America/New_York", "04:00"),
            year,
            none,
        ),
        ("hours and weeks", ("1 hour", "0 seconds"), ("P1W", "Europe/Berlin", "00:00"), year, none),
        (
            "hours in +05:30",
            ("1 hour", "0 seconds"),
            ("P1D", "Asia/Kolkata", "00:00"),
            year,
            Some(("30 minutes", Some("30 minutes"))),
        ),
        (
            "half hours in +05:30",
            ("30 minutes", "0 seconds"),
            ("P1D", "Asia/Kolkata", "00:00"),
            year,
            none,
        ),
        (
            "hours moved to +05:30",
            ("1 hour", "30 minutes"),
            ("P1D", "Asia/Kolkata", "00:00"),
            year,
            none,
        ),
        (
            "hours in +05:45",
            ("1 hour", "0 seconds"),
            ("P1D", "Asia/Kathmandu", "00:00"),
            year,
            Some(("15 minutes", Some("15 minutes"))),
        ),
        (
            "hours of +05:45",
            ("1 hour", "0 seconds"),
            ("PT1H", "Asia/Kathmandu", "00:00"),
            year,
            Some(("15 minutes", Some("15 minutes"))),
        ),
        (
            "quarters of +05:45",
            ("15 minutes", "0 seconds"),
            ("PT1H", "Asia/Kathmandu", "00:00"),
            century,
            none,
        ),
        (
            "Kathmandu before 1986 was at +05:30",
            ("1 hour", "15 minutes"),
            ("P1D", "Asia/Kathmandu", "00:00"),
            ("1985-01-01T00:00:00Z", "1987-01-01T00:00:00Z"),
            Some(("15 minutes", None)),
        ),
        (
            "a day that starts at half past",
            ("1 hour", "0 seconds"),
            ("P1D", "Europe/Lisbon", "04:30"),
            year,
            Some(("30 minutes", Some("30 minutes"))),
        ),
        (
            "two hours and summer time",
            ("2 hours", "0 seconds"),
            ("P1D", "Europe/Lisbon", "00:00"),
            year,
            Some(("1 hour", None)),
        ),
        (
            "two hours within the winter",
            ("2 hours", "0 seconds"),
            ("P1D", "Europe/Lisbon", "00:00"),
            ("2026-01-01T00:00:00Z", "2026-03-29T00:00:00Z"),
            none,
        ),
        ("days of UTC", ("1 day", "0 seconds"), ("P1D", "UTC", "00:00"), century, none),
        (
            "days and hours",
            ("1 day", "0 seconds"),
            ("PT1H", "UTC", "00:00"),
            year,
            Some(("1 hour", None)),
        ),
        (
            "days of UTC, elsewhere",
            ("1 day", "0 seconds"),
            ("P1D", "Asia/Tokyo", "00:00"),
            year,
            Some(("3 hours", Some("15 hours"))),
        ),
        (
            "weeks from Thursday",
            ("7 days", "0 seconds"),
            ("P1W", "UTC", "00:00"),
            year,
            Some(("1 day", Some("4 days"))),
        ),
        ("weeks from Monday", ("7 days", "4 days"), ("P1W", "UTC", "00:00"), year, none),
        (
            "one day alone",
            ("1 hour", "0 seconds"),
            ("P1D", "Asia/Kolkata", "00:00"),
            ("2026-06-01T18:30:00Z", "2026-06-02T18:30:00Z"),
            none,
        ),
    ] {
        let fit = windows(size, offset).check(
            &calendar(granularity, zone, day_start),
            time(from),
            time(to),
        );
        let remedy = match fit {
            Ok(()) => None,
            Err(DoesNotFold::Across { remedy, .. }) => {
                Some((remedy.size.to_string(), remedy.offset.map(|offset| offset.to_string())))
            }
            Err(other) => panic!("{case}: {other}"),
        };
        let expected = expected.map(|(size, offset)| (size.to_owned(), offset.map(str::to_owned)));
        assert_eq!(remedy, expected, "{case}");
    }
}

#[test]
fn the_refusal_is_a_sentence() {
    let kolkata = calendar("P1D", "Asia/Kolkata", "00:00");
    let (from, to) = (time("2026-10-01T00:00:00Z"), time("2026-10-03T00:00:00Z"));
    let refusal = windows("1 hour", "0 seconds").check(&kolkata, from, to).expect_err("across");
    assert_eq!(
        refusal.to_string(),
        "a window of 1 hour with offset 0 seconds lies across 2026-10-01T18:30:00Z, where 2026-10-02 \
         begins in Asia/Kolkata; a query with windows of size `30 minutes` and no offset would do, or one \
         with windows of this size and offset `30 minutes`"
    );
    let gap = "1 hour".parse().expect("a span");
    let sessions = Foldable::of(WindowSpec::Session { gap }).expect_err("sessions");
    assert_eq!(
        sessions.to_string(),
        "only tumbling windows fold: those of this query are sessions"
    );
}

#[test]
fn a_range_is_that_of_the_windows_that_start_in_it() {
    let hours = windows("1 hour", "15 minutes");
    let asked = |text| Some(time(text));
    let range = hours.range(asked("2026-10-01T09:15:00Z"), asked("2026-10-01T11:15:00.000001Z"));
    assert_eq!(
        (range.from, range.to),
        (asked("2026-10-01T09:15:00Z"), asked("2026-10-01T12:15:00Z"))
    );
    assert_eq!(hours.range(None, None), FoldRange::default());
}

#[test]
fn a_few_boundaries_tell_of_all_but_months_are_all_looked_at() {
    let count = |granularity, zone| {
        let calendar = calendar(granularity, zone, "00:00");
        let (from, to) = (time("1950-01-01T00:00:00Z"), time("2150-01-01T00:00:00Z"));
        telling_boundaries(&calendar, from, to).len()
    };
    for granularity in ["PT1H", "P1D", "P1W"] {
        assert_eq!(count(granularity, "UTC"), 2, "{granularity}: nothing ever changes");
        assert!((4..2_000).contains(&count(granularity, "Europe/Lisbon")), "{granularity}");
    }
    assert_eq!(count("P1M", "UTC"), 200 * 12 - 1);
}
