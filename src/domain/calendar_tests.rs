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

#[test]
fn a_period_has_the_hours_that_its_zone_gives_it() {
    for (case, (granularity, zone, day_start), inside, (date, start, end)) in [
        (
            "a day of 24 hours",
            ("P1D", "Europe/Lisbon", "00:00"),
            "2026-07-01T12:00:00Z",
            ("2026-07-01", "2026-06-30T23:00:00Z", "2026-07-01T23:00:00Z"),
        ),
        (
            "a day of 23 hours",
            ("P1D", "Europe/Lisbon", "00:00"),
            "2026-03-29T12:00:00Z",
            ("2026-03-29", "2026-03-29T00:00:00Z", "2026-03-29T23:00:00Z"),
        ),
        (
            "a day of 25 hours",
            ("P1D", "Europe/Lisbon", "00:00"),
            "2026-10-25T12:00:00Z",
            ("2026-10-25", "2026-10-24T23:00:00Z", "2026-10-26T00:00:00Z"),
        ),
        (
            "its last moment",
            ("P1D", "Europe/Lisbon", "00:00"),
            "2026-10-25T23:59:59.999999Z",
            ("2026-10-25", "2026-10-24T23:00:00Z", "2026-10-26T00:00:00Z"),
        ),
        (
            "before the business day starts",
            ("P1D", "Europe/Lisbon", "04:00"),
            "2026-07-01T02:59:59Z",
            ("2026-06-30", "2026-06-30T03:00:00Z", "2026-07-01T03:00:00Z"),
        ),
        (
            "a business day of 23 hours",
            ("P1D", "Europe/Berlin", "04:00"),
            "2026-03-28T12:00:00Z",
            ("2026-03-28", "2026-03-28T03:00:00Z", "2026-03-29T02:00:00Z"),
        ),
        (
            "a start that is jumped over is the jump",
            ("P1D", "Europe/Berlin", "02:30"),
            "2026-03-29T12:00:00Z",
            ("2026-03-29", "2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"),
        ),
        (
            "a start that comes twice is the first",
            ("P1D", "Europe/Berlin", "02:30"),
            "2026-10-25T12:00:00Z",
            ("2026-10-25", "2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"),
        ),
        (
            "a midnight that does not exist",
            ("P1D", "America/Sao_Paulo", "00:00"),
            "2018-11-04T12:00:00Z",
            ("2018-11-04", "2018-11-04T03:00:00Z", "2018-11-05T02:00:00Z"),
        ),
        (
            "an hour before midnight that comes twice",
            ("P1D", "America/Sao_Paulo", "00:00"),
            "2018-02-18T02:30:00Z",
            ("2018-02-17", "2018-02-17T02:00:00Z", "2018-02-18T03:00:00Z"),
        ),
        (
            "the day before a skipped date",
            ("P1D", "Pacific/Apia", "00:00"),
            "2011-12-30T09:59:59Z",
            ("2011-12-29", "2011-12-29T10:00:00Z", "2011-12-30T10:00:00Z"),
        ),
        (
            "the day after it",
            ("P1D", "Pacific/Apia", "00:00"),
            "2011-12-30T10:00:00Z",
            ("2011-12-31", "2011-12-30T10:00:00Z", "2011-12-31T10:00:00Z"),
        ),
        (
            "the business day before a skipped date",
            ("P1D", "Pacific/Apia", "04:00"),
            "2011-12-30T09:59:59Z",
            ("2011-12-29", "2011-12-29T14:00:00Z", "2011-12-30T10:00:00Z"),
        ),
        (
            "the rest of the night after it belongs to the skipped date",
            ("P1D", "Pacific/Apia", "04:00"),
            "2011-12-30T11:00:00Z",
            ("2011-12-30", "2011-12-30T10:00:00Z", "2011-12-30T14:00:00Z"),
        ),
        (
            "half an hour beside the others",
            ("P1D", "Asia/Kolkata", "00:00"),
            "2026-10-01T12:00:00Z",
            ("2026-10-01", "2026-09-30T18:30:00Z", "2026-10-01T18:30:00Z"),
        ),
        (
            "a quarter",
            ("P1D", "Asia/Kathmandu", "00:00"),
            "2026-10-01T12:00:00Z",
            ("2026-10-01", "2026-09-30T18:15:00Z", "2026-10-01T18:15:00Z"),
        ),
        (
            "a week from Monday, with a change in it",
            ("P1W", "Europe/Lisbon", "00:00"),
            "2026-10-25T12:00:00Z",
            ("2026-10-19", "2026-10-18T23:00:00Z", "2026-10-26T00:00:00Z"),
        ),
        (
            "the week of New Year",
            ("P1W", "UTC", "00:00"),
            "2027-01-01T00:00:00Z",
            ("2026-12-28", "2026-12-28T00:00:00Z", "2027-01-04T00:00:00Z"),
        ),
        (
            "a week by business days",
            ("P1W", "UTC", "04:00"),
            "2026-10-05T03:00:00Z",
            ("2026-09-28", "2026-09-28T04:00:00Z", "2026-10-05T04:00:00Z"),
        ),
        (
            "a month",
            ("P1M", "Europe/Lisbon", "00:00"),
            "2026-10-31T23:30:00Z",
            ("2026-10-01", "2026-09-30T23:00:00Z", "2026-11-01T00:00:00Z"),
        ),
        (
            "the February of a leap year",
            ("P1M", "UTC", "00:00"),
            "2028-02-29T23:00:00Z",
            ("2028-02-01", "2028-02-01T00:00:00Z", "2028-03-01T00:00:00Z"),
        ),
        (
            "a month by business days",
            ("P1M", "UTC", "04:00"),
            "2026-11-01T03:59:00Z",
            ("2026-10-01", "2026-10-01T04:00:00Z", "2026-11-01T04:00:00Z"),
        ),
        (
            "summer time long after the tables end",
            ("P1D", "Europe/Lisbon", "00:00"),
            "2150-07-01T12:00:00Z",
            ("2150-07-01", "2150-06-30T23:00:00Z", "2150-07-01T23:00:00Z"),
        ),
        (
            "before 1970",
            ("P1D", "America/New_York", "00:00"),
            "1950-07-01T12:00:00Z",
            ("1950-07-01", "1950-07-01T04:00:00Z", "1950-07-02T04:00:00Z"),
        ),
        (
            "an hour",
            ("PT1H", "Asia/Kolkata", "00:00"),
            "2026-10-01T09:45:00Z",
            ("2026-10-01", "2026-10-01T09:30:00Z", "2026-10-01T10:30:00Z"),
        ),
        (
            "an hour that comes twice, the first",
            ("PT1H", "Europe/Lisbon", "00:00"),
            "2026-10-25T00:30:00Z",
            ("2026-10-25", "2026-10-25T00:00:00Z", "2026-10-25T01:00:00Z"),
        ),
        (
            "and the second",
            ("PT1H", "Europe/Lisbon", "00:00"),
            "2026-10-25T01:30:00Z",
            ("2026-10-25", "2026-10-25T01:00:00Z", "2026-10-25T02:00:00Z"),
        ),
        (
            "an hour that half comes twice",
            ("PT1H", "Australia/Lord_Howe", "00:00"),
            "2026-04-04T14:30:00Z",
            ("2026-04-05", "2026-04-04T14:00:00Z", "2026-04-04T15:30:00Z"),
        ),
        (
            "the same, after the change",
            ("PT1H", "Australia/Lord_Howe", "00:00"),
            "2026-04-04T15:15:00Z",
            ("2026-04-05", "2026-04-04T14:00:00Z", "2026-04-04T15:30:00Z"),
        ),
        (
            "an hour of which half is jumped over",
            ("PT1H", "Australia/Lord_Howe", "00:00"),
            "2026-10-03T15:45:00Z",
            ("2026-10-04", "2026-10-03T15:30:00Z", "2026-10-03T16:00:00Z"),
        ),
    ] {
        let period = calendar(granularity, zone, day_start).period_of(time(inside));
        let Window { start: from, end: to } = period.bounds;
        assert_eq!(
            (period.date().as_str(), from.to_string().as_str(), to.to_string().as_str()),
            (date, start, end),
            "{case}"
        );
    }
}

#[test]
fn periods_stand_side_by_side_through_every_change_of_the_clock() {
    for zone in [
        "America/Sao_Paulo",
        "Pacific/Apia",
        "Pacific/Kwajalein",
        "Australia/Lord_Howe",
        "Africa/Casablanca",
        "America/St_Johns",
        "Asia/Kathmandu",
    ] {
        for granularity in ["PT1H", "P1D", "P1W", "P1M"] {
            for day_start in ["00:00", "02:30", "23:45"] {
                let calendar = calendar(granularity, zone, day_start);
                let mut change = time("1960-01-01T00:00:00Z");
                while let Some(next) = calendar.zone.next_change(change) {
                    if next > time("2060-01-01T00:00:00Z") {
                        break;
                    }
                    change = next;
                    let mut bounds = calendar.period_of(just_before(change)).bounds;
                    for _ in 0..3 {
                        let case = format!("{zone} {granularity} {day_start} {change}");
                        assert!(bounds.start < bounds.end, "{case}");
                        for inside in [bounds.start, just_before(bounds.end)] {
                            assert_eq!(calendar.period_of(inside).bounds, bounds, "{case}");
                        }
                        let next = calendar.period_of(bounds.end).bounds;
                        assert_eq!(bounds.end, next.start, "{case}");
                        bounds = next;
                    }
                }
            }
        }
    }
}

#[test]
fn what_is_no_zone_start_or_granularity_is_refused() {
    for name in ["", "Lisbon", "Europe/Nowhere", "+05:30", "EST5EDT,M3.2.0,M11.1.0", "../etc"] {
        assert_eq!(name.parse::<Zone>(), Err(UnknownZone), "{name}");
    }
    for (name, written) in [("europe/lisbon", "Europe/Lisbon"), ("UTC", "UTC")] {
        assert_eq!(name.parse::<Zone>().expect("a zone").to_string(), written);
    }
    for text in ["", "4:00", "04", "24:00", "04:60", "+4:00", "04:00:00", "-1:00"] {
        assert_eq!(text.parse::<DayStart>(), Err(InvalidDayStart), "{text}");
    }
    assert_eq!("23:59".parse::<DayStart>().expect("a start").to_string(), "23:59");
    for text in ["", "P1Y", "p1d", "P7D"] {
        assert_eq!(text.parse::<Granularity>(), Err(UnknownGranularity), "{text}");
    }
}
