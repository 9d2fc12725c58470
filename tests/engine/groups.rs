//! What is added together and what never is: groups, currencies, money.

use tillmark::domain::OutputMode;

use crate::builders::{Sale, a_sale, an_hourly_query, at, shown, shown_dropped};

#[test]
fn currencies_are_never_added() {
    let mut query = an_hourly_query();
    let rows = query.run([
        a_sale("09:10").of("20.00"),
        a_sale("09:20").of("1200").in_currency("JPY"),
        a_sale("09:30").of("7.50").in_currency("EUR"),
        a_sale("09:40").of("30.50"),
        a_sale("11:00"),
    ]);
    assert_eq!(rows, ["09:00:00 1 7.50 EUR", "09:00:00 1 1200 JPY", "09:00:00 2 50.50 USD"]);
}

#[test]
fn an_event_without_a_store_is_in_a_group_of_its_own() {
    let mut query = an_hourly_query().grouped_by(["store_id"]);
    let rows = query.run([
        a_sale("09:10").in_store("1"),
        a_sale("09:20"),
        a_sale("09:30").in_store("2"),
        a_sale("09:40"),
        a_sale("09:50").in_store("-"),
        a_sale("11:00"),
    ]);
    assert_eq!(
        rows,
        [
            "09:00:00 2 20.00 USD -",
            "09:00:00 1 10.00 USD -",
            "09:00:00 1 10.00 USD 1",
            "09:00:00 1 10.00 USD 2",
        ],
        "no store comes first, and is not the store named `-`"
    );
}

#[test]
fn every_combination_of_group_by_values_has_its_row_in_the_order_of_the_fields() {
    let sales = [
        a_sale("09:10").in_store("1").with_attribute("channel", "web"),
        a_sale("09:20").in_store("1").with_attribute("channel", "till").with_status("paid"),
        a_sale("09:30").in_store("1").with_attribute("channel", "web").with_attribute("x", "y"),
        a_sale("09:40").in_store("1"),
    ];
    let mut query = an_hourly_query().grouped_by(["store_id", "attributes.channel"]);
    let outcome = query.batch(sales.clone());
    assert_eq!(
        shown(&outcome.state_changed),
        ["09:00:00 1 10.00 USD 1 -", "09:00:00 1 10.00 USD 1 till", "09:00:00 2 20.00 USD 1 web",]
    );
    let mut query = an_hourly_query().grouped_by(["status", "store_id"]);
    let outcome = query.batch(sales);
    assert_eq!(
        shown(&outcome.state_changed),
        ["09:00:00 1 10.00 USD paid 1", "09:00:00 3 30.00 USD placed 1"]
    );
}

#[test]
fn all_groups_share_one_watermark() {
    let mut query = an_hourly_query().grouped_by(["store_id"]);
    let first = query.run([a_sale("09:10").in_store("1"), a_sale("11:00").in_store("2")]);
    assert_eq!(first, ["09:00:00 1 10.00 USD 1"]);
    let outcome = query.batch([a_sale("09:20").in_store("3")]);
    assert_eq!(at(outcome.late_watermark), "10:00:00");
    assert_eq!(
        shown_dropped(&outcome.dropped),
        ["#3 missed 09:00:00 with 10.00 USD 3, late by 100 minutes"],
        "late, though its own shop never sold before"
    );
}

#[test]
fn refunds_are_subtracted_and_counted() {
    let mut query = an_hourly_query();
    let rows = query.run([
        a_sale("09:10").of("4.50"),
        a_sale("09:20").of("-4.50"),
        a_sale("09:30").of("-0.0001"),
        a_sale("11:00"),
    ]);
    assert_eq!(rows, ["09:00:00 3 -0.0001 USD"]);
}

#[test]
fn a_window_whose_money_cancels_out_still_has_its_row() {
    let mut query = an_hourly_query();
    let rows =
        query.run([a_sale("09:10").of("4.50"), a_sale("09:20").of("-4.50"), a_sale("11:00")]);
    assert_eq!(rows, ["09:00:00 2 0.00 USD"]);
}

#[test]
fn sums_are_exact_where_binary_fractions_are_not() {
    let mut query = an_hourly_query();
    query.batch((0..10).map(|_| a_sale("09:10").of("0.10")));
    query.batch([a_sale("09:20").of("0.0003"), a_sale("09:30").of("0.20")]);
    assert_eq!(query.open(), ["09:00:00 12 1.2003 USD"]);
}

#[test]
fn sums_of_the_largest_amounts_stay_exact() {
    for (amount, sum) in [
        ("99999999999999.9999", "9999999999999999.99 USD"),
        ("-99999999999999.9999", "-9999999999999999.99 USD"),
    ] {
        for mode in [OutputMode::Update, OutputMode::Complete] {
            let mut query = an_hourly_query().in_mode(mode);
            for _ in 0..4 {
                query.batch((0..25).map(|_| a_sale("09:10").of(amount)));
                query.restart();
            }
            assert_eq!(query.table(), [format!("09:00:00 100 {sum}")], "{mode:?}");
        }
    }
}
