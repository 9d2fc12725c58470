//! Rules as JSON: read, written, and refused.

use super::*;

fn check(json: &str) -> Result<QuerySpec, Vec<Fault>> {
    serde_json::from_str::<QuerySpecText>(json).expect(json).try_into()
}

#[test]
fn a_rule_is_written_as_it_was_read() {
    let spec = check(
        r#"{"filter":{"status":["placed"]},"window":{"kind":"tumbling","size":"PT1H"},
            "watermark_delay":"60 minutes","group_by":["store_id","attributes.channel"],
            "output_mode":"append","trigger":{"kind":"interval","every":"5 seconds"}}"#,
    )
    .expect("a good rule");
    let text = QuerySpecText::from(&spec);
    assert_eq!(text.watermark_delay, "1 hour");
    assert_eq!(QuerySpec::try_from(text), Ok(spec));
}

#[test]
fn every_fault_of_a_rule_is_named_at_its_place() {
    let faults = check(
        r#"{"filter":{"colour":["red"],"status":[]},"window":{"kind":"tumbling","size":"1 hour","offset":"1 hour"},
            "watermark_delay":"soon","group_by":["store_id","store_id"],"output_mode":"apend",
            "trigger":{"kind":"interval","every":"0 seconds"},"max_events_per_batch":0,
            "start":"now","deduplicate":{"keys":["order_id","colour"]},"idle_timeout":"0 hours"}"#,
    )
    .expect_err("nothing is right");
    let pointers: Vec<&str> = faults.iter().map(|fault| fault.pointer.as_str()).collect();
    assert_eq!(
        pointers,
        [
            "/filter/colour",
            "/filter/status",
            "/window/offset",
            "/watermark_delay",
            "/group_by/1",
            "/output_mode",
            "/trigger/every",
            "/start",
            "/max_events_per_batch",
            "/deduplicate/keys/1",
            "/idle_timeout"
        ]
    );
}

#[test]
fn nul_is_refused_wherever_it_would_reach_the_database() {
    let faults = check(
        r#"{"filter":{"status":["placed","a\u0000"],"attributes.a\u0000":["b"]},
            "window":{"kind":"tumbling","size":"1 hour"},"watermark_delay":"1 hour","output_mode":"append",
            "group_by":["attributes.\u0000"],"deduplicate":{"keys":["attributes.c\u0000"]}}"#,
    )
    .expect_err("NUL");
    let pointers: Vec<&str> = faults.iter().map(|fault| fault.pointer.as_str()).collect();
    assert_eq!(
        pointers,
        ["/filter/attributes.a\0", "/filter/status/1", "/group_by/0", "/deduplicate/keys/0"]
    );
}

#[test]
fn a_rule_is_made_of_objects_and_says_everything_once() {
    let rule = r#"{"filter":{"status":["placed"]},"window":{"kind":"tumbling","size":"1 hour"},"watermark_delay":"1 hour",
        "deduplicate":{"keys":["order_id"]},"output_mode":"append","trigger":{"kind":"manual"}}"#;
    for (case, from, to, sentence) in [
        ("window", r#"{"kind":"tumbling","size":"1 hour"}"#, r#"["tumbling","1 hour"]"#, "object"),
        ("trigger", r#"{"kind":"manual"}"#, r#"["manual"]"#, "sequence, expected an object"),
        ("keys", r#"{"keys":["order_id"]}"#, r#"[["order_id"]]"#, "expected an object"),
        ("filter", r#"{"status":["placed"]}"#, r#"[["status"]]"#, "expected an object"),
        (
            "filter twice",
            r#"{"status":["placed"]}"#,
            r#"{"status":["placed"],"sta\u0074us":["paid"]}"#,
            "`status` is there twice",
        ),
        ("size twice", r#""size":"1 hour""#, r#""size":"1 hour","size":"2 hours""#, "duplicate"),
    ] {
        let changed = rule.replace(from, to);
        assert_ne!(changed, rule, "{case}");
        let error = serde_json::from_str::<QuerySpecText>(&changed).expect_err(case);
        assert!(error.is_data() && error.to_string().contains(sentence), "{case}: {error}");
    }
    check(rule).expect("a good rule");
}

#[test]
fn a_change_of_what_is_counted_makes_it_another_query() {
    let hourly = r#"{"window":{"kind":"tumbling","size":"1 hour"},"watermark_delay":"1 hour","output_mode":"append"}"#;
    let spec = check(hourly).expect("a good rule");
    for (case, json, pointer) in [
        (
            "delay",
            hourly.replace(r#""watermark_delay":"1 hour""#, r#""watermark_delay":"0 seconds""#),
            None,
        ),
        ("window", hourly.replace(r#""size":"1 hour""#, r#""size":"1 day""#), Some("/window")),
        ("mode", hourly.replace("append", "update"), Some("/output_mode")),
    ] {
        let faults = spec.faults_of_change(&check(&json).expect("a good rule"));
        assert_eq!(faults.first().map(|fault| fault.pointer.as_str()), pointer, "{case}");
    }
}

#[test]
fn windows_of_every_kind_are_written_as_they_were_read() {
    for (window, written) in [
        (
            r#"{"kind":"sliding","size":"PT1H","slide":"15 minutes"}"#,
            r#"{"kind":"sliding","size":"1 hour","slide":"15 minutes","offset":"0 seconds"}"#,
        ),
        (
            r#"{"kind":"sliding","size":"10 minutes","slide":"3 minutes","offset":"1 minute"}"#,
            r#"{"kind":"sliding","size":"10 minutes","slide":"3 minutes","offset":"1 minute"}"#,
        ),
        (r#"{"kind":"session","gap":"30 minutes"}"#, r#"{"kind":"session","gap":"30 minutes"}"#),
    ] {
        let spec = check(&with_window(window, "append")).expect(window);
        let text = QuerySpecText::from(&spec);
        assert_eq!(serde_json::to_string(&text.window).expect("JSON"), written);
        assert_eq!(QuerySpec::try_from(text), Ok(spec));
    }
}

fn with_window(window: &str, mode: &str) -> String {
    format!(r#"{{"window":{window},"watermark_delay":"1 hour","output_mode":"{mode}"}}"#)
}

#[test]
fn windows_and_combinations_that_cannot_be_are_refused_at_their_place() {
    let keys = r#"{"kind":"tumbling","size":"1 hour"},"deduplicate":{"keys":["order_id"]}"#;
    for (window, mode, pointer) in [
        (r#"{"kind":"sliding","size":"1 hour","slide":"2 hours"}"#, "append", "/window/slide"),
        (r#"{"kind":"sliding","size":"1 hour","slide":"0 seconds"}"#, "append", "/window/slide"),
        (r#"{"kind":"sliding","size":"1 hour","slide":"1 second"}"#, "append", "/window/slide"),
        (
            r#"{"kind":"sliding","size":"1 hour","slide":"10 minutes","offset":"10 minutes"}"#,
            "append",
            "/window/offset",
        ),
        (r#"{"kind":"session","gap":"PT0S"}"#, "append", "/window/gap"),
        (r#"{"kind":"session","gap":"1 hour"}"#, "update", "/output_mode"),
        (r#"{"kind":"session","gap":"1 hour"}"#, "complete", "/output_mode"),
        (keys, "complete", "/output_mode"),
        (
            r#"{"kind":"tumbling","size":"1 hour"},"deduplicate":{"keys":[]}"#,
            "append",
            "/deduplicate/keys",
        ),
    ] {
        let faults = check(&with_window(window, mode)).expect_err(window);
        let pointers: Vec<&str> = faults.iter().map(|fault| fault.pointer.as_str()).collect();
        assert_eq!(pointers, [pointer], "{window} {mode}");
    }
}

#[test]
fn what_may_change_of_a_query_may_and_the_rest_is_named() {
    let before = r#"{"window":{"kind":"session","gap":"1 hour"},"watermark_delay":"1 hour","output_mode":"append",
        "deduplicate":{"keys":["order_id"]},"idle_timeout":"1 hour"}"#;
    let spec = check(before).expect("a good rule");
    for (case, from, to, pointer) in [
        ("gap", r#""gap":"1 hour""#, r#""gap":"2 hours""#, Some("/window")),
        ("keys", "order_id", "event_id", Some("/deduplicate")),
        ("idle", r#""idle_timeout":"1 hour""#, r#""idle_timeout":null"#, None),
    ] {
        let faults = spec.faults_of_change(&check(&before.replace(from, to)).expect(case));
        assert_eq!(faults.first().map(|fault| fault.pointer.as_str()), pointer, "{case}");
    }
}
