//! Mistakes in the rules of event time, against the answers recorded from Apache Spark.

use std::panic::catch_unwind;

use tillmark::domain::Defect;

use crate::spark_replay::{recorded_cases, replay};

/// The cases whose proof fails with this defect.
fn disagreements(defect: Option<Defect>) -> Vec<String> {
    let cases = recorded_cases().into_iter();
    cases
        .filter(|case| catch_unwind(|| replay(case, |rules| rules.defect = defect)).is_err())
        .map(|case| case.name)
        .collect()
}

fn assert_noticed(defect: Defect) {
    let noticed_by = disagreements(Some(defect));
    println!("{defect:?} is noticed by {} of Spark's cases: {noticed_by:?}", noticed_by.len());
    assert!(!noticed_by.is_empty(), "{defect:?} is noticed by none of Spark's cases");
}

#[test]
fn without_a_defect_every_case_of_spark_passes() {
    assert_eq!(disagreements(None), Vec::<String>::new());
}

#[test]
fn one_watermark_instead_of_two_is_noticed() {
    assert_noticed(Defect::OneWatermark);
}

#[test]
fn less_than_instead_of_at_most_is_noticed() {
    assert_noticed(Defect::StrictlyBefore);
}
