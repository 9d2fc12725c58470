//! Everything that can be wrong with a post: the exact status, place and sentence of each.

use serde_json::{Value, json};

use crate::bad_fields::{BAD_AMOUNTS, BAD_IDS, BAD_OTHERS, BAD_TIMES};
use crate::support::{Answer, TestDatabase, TestService, a_sale, gzip, zstd};

const JSON: &str = "application/json";
const NDJSON: &str = "application/x-ndjson";
const CLOUD_EVENT: &str = "application/cloudevents+json";
const CLOUD_EVENTS: &str = "application/cloudevents-batch+json";

/// A sale with the JSON text `value` as its `field`; an empty text leaves the field out.
fn sale_with(field: &str, value: &str) -> String {
    let mut event = a_sale("1", "09:05:00", "20.00");
    if value.is_empty() {
        event.as_object_mut().unwrap().remove(field);
    } else {
        event[field] = "<value>".into();
    }
    // As text, so that what is posted is what stands here.
    event.to_string().replace("\"<value>\"", value)
}

/// A CloudEvent around a sale, with the JSON text `value` as its `attribute`.
fn cloud_event_with(attribute: &str, value: &str) -> String {
    let mut event = json!({
        "specversion": "1.0", "id": "1-placed", "source": "till-7", "type": "sale",
        "data": a_sale("1", "09:05:00", "20.00"),
    });
    if value.is_empty() {
        event.as_object_mut().unwrap().remove(attribute);
    } else {
        event[attribute] = "<value>".into();
    }
    event.to_string().replace("\"<value>\"", value)
}

/// Checks status, content type, place and sentence of a refusal of one item or a whole body.
fn assert_refused(case: &str, answer: &Answer, status: u16, pointer: &str, sentence: &str) {
    assert_eq!(answer.status, status, "{case}: {}", answer.body);
    assert_eq!(answer.header("content-type"), "application/problem+json", "{case}");
    assert_eq!(answer.body["status"], status, "{case}");
    let (at, found) = match &answer.body["results"][0]["errors"][0] {
        Value::Null => ("", &answer.body["detail"]),
        error => (error["pointer"].as_str().unwrap(), &error["detail"]),
    };
    assert_eq!((at, found.as_str().unwrap()), (pointer, sentence), "{case}");
}

async fn assert_nothing_stored(database: &TestDatabase) {
    assert_eq!(database.number("select count(*) from raw_events").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_bad_field_is_told_with_its_place_in_every_format() {
    let database = TestDatabase::create().await;
    let service = TestService::start(&database).await;
    for (field, value, pointer, sentence) in [BAD_IDS, BAD_AMOUNTS, BAD_TIMES, BAD_OTHERS].concat()
    {
        let case = format!("{field}: {value}");
        let sale = sale_with(field, value);
        for content_type in [JSON, NDJSON] {
            let answer = service.post_text("/v1/events", content_type, sale.clone()).await;
            assert_refused(&case, &answer, 422, pointer, sentence);
            let fault = &answer.body["results"][0];
            assert_eq!((&fault["index"], &fault["seq"]), (&json!(0), &Value::Null), "{case}");
            assert_eq!(answer.body["rejected"], 1, "{case}");
        }
        let cloud_event = cloud_event_with("data", &sale);
        let answer = service.post_text("/v1/events", CLOUD_EVENT, cloud_event).await;
        assert_refused(&case, &answer, 422, &format!("/data{pointer}"), sentence);
    }
    assert_nothing_stored(&database).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_text_beyond_its_length_is_told_its_place() {
    let database = TestDatabase::create().await;
    let service = TestService::start(&database).await;
    let long = |chars: usize| format!("\"{}\"", "é".repeat(chars));
    let attributes: Vec<String> = (0..33).map(|number| format!("\"a{number}\":\"\"")).collect();
    let note = |bytes: usize| format!("\"{}\"", "x".repeat(bytes));
    let bytes = sale_with("note", &note(65 * 1024)).len();
    let too_many = |chars: usize, allowed: usize| {
        format!("has {chars} characters; at most {allowed} are allowed")
    };
    for (field, value, pointer, sentence) in [
        ("event_id", long(201), "/event_id", format!("`event_id` {}", too_many(201, 200))),
        ("order_id", long(201), "/order_id", format!("`order_id` {}", too_many(201, 200))),
        ("order_id", "9".repeat(201), "/order_id", format!("`order_id` {}", too_many(201, 200))),
        ("till_id", long(201), "/till_id", format!("`till_id` {}", too_many(201, 200))),
        ("status", long(65), "/status", format!("`status` {}", too_many(65, 64))),
        (
            "attributes",
            format!("{{\"n\":{}}}", long(257)),
            "/attributes/n",
            format!("Attribute `n` {}", too_many(257, 256)),
        ),
        (
            "attributes",
            format!("{{{}}}", attributes.join(",")),
            "/attributes",
            "`attributes` has 33 members; at most 32 are allowed".to_owned(),
        ),
        (
            "note",
            note(65 * 1024),
            "",
            format!("The item has {bytes} bytes; at most 65536 are allowed"),
        ),
    ] {
        let answer = service.post_text("/v1/events", JSON, sale_with(field, &value)).await;
        assert_refused(field, &answer, 422, pointer, &sentence);
    }
    assert_nothing_stored(&database).await;
}

/// Its name, its content type, the body, the status, the pointer and the sentence.
type BadBody = (&'static str, &'static str, Vec<u8>, u16, &'static str, &'static str);

// Two lines a case: wrapped, nobody would see the whole of it.
#[rustfmt::skip]
fn bad_bodies() -> Vec<BadBody> {
    let case = |case, content_type, body: &str, status, pointer, sentence| {
        (case, content_type, body.as_bytes().to_vec(), status, pointer, sentence)
    };
    let deep = "[".repeat(200) + &"]".repeat(200);
    vec![
        case("nothing", JSON, "", 400, "",
            "The body is not JSON: EOF while parsing a value at line 1 column 0."),
        case("cut short", JSON, "{", 400, "",
            "The body is not JSON: EOF while parsing an object at line 1 column 1."),
        case("two objects", JSON, "{} {}", 400, "",
            "The body is not JSON: trailing characters at line 1 column 4."),
        case("a trailing comma in a list", JSON, "[1,]", 400, "",
            "The body is not JSON: trailing comma at line 1 column 4."),
        case("a trailing comma in an event", JSON, "{\"a\":1,}", 400, "",
            "The body is not JSON: trailing comma at line 1 column 8."),
        case("NaN", JSON, "{\"amount\":NaN}", 400, "",
            "The body is not JSON: expected value at line 1 column 11."),
        case("a byte order mark", JSON, "\u{feff}[]", 400, "",
            "The body begins with a byte order mark; JSON is sent without one (RFC 8259)."),
        case("a byte order mark before lines", NDJSON, "\u{feff}{}", 400, "",
            "The body begins with a byte order mark; JSON is sent without one (RFC 8259)."),
        ("not UTF-8", JSON, b"[\"\xFF\"]".to_vec(), 400, "",
            "The body is not UTF-8: byte 2 belongs to no character."),
        case("200 levels", JSON, &deep, 400, "",
            "The body is nested deeper than 128 levels; an event needs two."),
        case("a string", JSON, "\"x\"", 422, "", r#"The body is a string; send an event, an array of events or {"events": […]}."#),
        case("events is no array", JSON, r#"{"events":1}"#, 422, "",
            "`events` must be an array of events."),
        case("something beside events", JSON, r#"{"events":[],"atomic":true}"#, 422, "",
            "`atomic` stands beside `events`; only `events` may be there."),
        case("events twice", JSON, r#"{"events":[],"events":[]}"#, 422, "",
            "`events` is written more than once; write it once."),
        case("10,001 events", JSON, &format!("[{}]", vec!["1"; 10_001].join(",")), 413, "",
            "The body has 10001 events; at most 10000 are allowed, so send them in parts."),
        case("10,001 lines", NDJSON, &"1\n".repeat(10_001), 413, "",
            "The body has 10001 events; at most 10000 are allowed, so send them in parts."),
        case("an item that is no object", JSON, "[17]", 422, "",
            "The item is a number; an event is an object of named fields"),
        case("a field written twice", JSON, r#"{"status":"paid","\u0073tatus":"paid"}"#, 422, "/status",
            "`status` is written more than once; write it once"),

        case("a line cut short", NDJSON, r#"{"order_id":"#, 422, "",
            "The line is not JSON: EOF while parsing a value at column 12"),
        case("two objects in a line", NDJSON, "{} {}\n", 422, "",
            "The line is not JSON: trailing characters at column 4"),
        case("a trailing comma in a line", NDJSON, "{\"a\":1,}\r\n", 422, "",
            "The line is not JSON: trailing comma at column 8"),
        case("lines that are a list", NDJSON, "[{}]", 422, "",
            "The item is an array; an event is an object of named fields"),
        case("a line of a word", NDJSON, "sales", 422, "",
            "The line is not JSON: expected value at column 1"),
        case("a line 200 levels deep", NDJSON, &deep, 422, "",
            "The line is nested deeper than 128 levels; an event needs two"),
        ("a line that is not UTF-8", NDJSON, b"{\"\xFF\":1}".to_vec(), 422, "",
            "The line is not UTF-8: byte 2 of it belongs to no character"),

        case("a list as one CloudEvent", CLOUD_EVENT, "[]", 422, "",
            "The body is an array; one CloudEvent is an object, and an array of them goes as `application/cloudevents-batch+json`."),
        case("one CloudEvent as a list", CLOUD_EVENTS, "{}", 422, "",
            "The body is an object; a batch is an array of CloudEvents, and one of them alone goes as `application/cloudevents+json`."),
        case("a CloudEvent cut short", CLOUD_EVENT, "{", 400, "",
            "The body is not JSON: EOF while parsing an object at line 1 column 1."),
        case("a CloudEvent that is a number", CLOUD_EVENTS, "[1]", 422, "",
            "The item is a number; a CloudEvent is an object of named attributes"),
        case("no CloudEvents of a kind", CLOUD_EVENTS, "[{}]", 422, "/specversion",
            "`specversion` is required: `1.0` in a string"),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn every_bad_body_is_told_what_is_wrong() {
    let database = TestDatabase::create().await;
    let service = TestService::start(&database).await;
    for (case, content_type, body, status, pointer, sentence) in bad_bodies() {
        let answer = service.post_text("/v1/events", content_type, body).await;
        assert_refused(case, &answer, status, pointer, sentence);
    }
    for (case, content_type, named) in [
        ("plain text", "text/plain", "`text/plain` is not accepted here"),
        (
            "Latin-1",
            "application/json; charset=latin1",
            "`application/json; charset=latin1` is not accepted here",
        ),
        ("nothing said", "", "`` is not accepted here"),
    ] {
        let answer = service.post_text("/v1/events", content_type, "[]").await;
        let sentence = format!(
            "{named}; `{JSON}`, `{NDJSON}`, `{CLOUD_EVENT}` and `{CLOUD_EVENTS}`, in UTF-8, are."
        );
        assert_refused(case, &answer, 415, "", &sentence);
    }
    assert_nothing_stored(&database).await;
}

// Two lines a case: wrapped, nobody would see the whole of it.
#[rustfmt::skip]
const BAD_ATTRIBUTES: &[(&str, &str, &str, &str)] = &[
    ("specversion", r#""0.3""#, "/specversion",
        "`specversion` is `0.3`; only `1.0` is taken"),
    ("id", "", "/id",
        "`id` is required: a string of 1 to 200 characters, the event's id"),
    ("id", "17", "/id",
        "`id` is a number; it must be a string of 1 to 200 characters, the event's id"),
    ("id", r#""another""#, "/data/event_id",
        "`event_id` is `1-placed`, the `id` around it `another`; leave it out, or make them equal"),
    ("source", "", "/source",
        "`source` is required: a string that is not empty, the till"),
    ("source", r#""""#, "/source",
        "`source` is empty; it must be a string that is not empty, the till"),
    ("type", "", "/type",
        "`type` is required: a string that is not empty, such as `com.example.order.placed`"),
    ("time", "5", "/time",
        "`time` is a number; it must be an RFC 3339 time with an offset in a string, such as `2026-10-01T09:05:00Z`"),
    ("datacontenttype", r#""text/xml""#, "/datacontenttype",
        "`datacontenttype` is `text/xml`; only JSON such as `application/json` is taken"),
    ("data", "", "/data",
        "`data` is required: the event, an object of named fields"),
    ("data", r#""{}""#, "/data",
        "`data` is a string; it must be the event, an object of named fields"),
    ("data_base64", r#""e30=""#, "/data_base64",
        "`data_base64` is not taken; write the event as JSON into `data`, an object"),
    ("amount", "1", "/amount",
        "`amount` stands beside `data`; a field of the event belongs inside it, as `/data/amount`"),
    ("Tenant", "1", "/Tenant",
        "`Tenant` is no attribute of a CloudEvent; their names are lower-case letters and digits"),
];

#[tokio::test(flavor = "multi_thread")]
async fn every_bad_attribute_of_a_cloud_event_is_told_its_place() {
    let database = TestDatabase::create().await;
    let service = TestService::start(&database).await;
    for (attribute, value, pointer, sentence) in BAD_ATTRIBUTES {
        let case = format!("{attribute}: {value}");
        let event = cloud_event_with(attribute, value);
        let one = service.post_text("/v1/events", CLOUD_EVENT, event.clone()).await;
        assert_refused(&case, &one, 422, pointer, sentence);
        let batch = service.post_text("/v1/events", CLOUD_EVENTS, format!("[{event}]")).await;
        assert_refused(&case, &batch, 422, pointer, sentence);
    }
    assert_nothing_stored(&database).await;
}

// Two lines a case: wrapped, nobody would see the whole of it.
#[rustfmt::skip]
fn bad_compressions() -> Vec<(&'static str, &'static str, Vec<u8>, u16, &'static str)> {
    let plain = || br#"[{"order_id":1}]"#.to_vec();
    let cut = |bytes: Vec<u8>| bytes[..bytes.len() - 1].to_vec();
    let mut flipped = gzip(&plain());
    let checksum = flipped.len() - 8;
    flipped[checksum] ^= 1;
    let spaces = vec![b' '; (10 << 20) + 1];
    let too_large = "The body has more than 10485760 bytes when decompressed; send the events in parts.";
    vec![
        ("no gzip", "gzip", plain(), 400,
            "The body is not the gzip that `content-encoding` says: invalid gzip header."),
        ("gzip cut short", "gzip", cut(gzip(&plain())), 400,
            "The body is not the gzip that `content-encoding` says: corrupt gzip stream does not have a matching checksum."),
        ("something after gzip", "gzip", [gzip(&plain()), plain()].concat(), 400,
            "The body is not the gzip that `content-encoding` says: invalid gzip header."),
        ("a wrong checksum", "gzip", flipped, 400,
            "The body is not the gzip that `content-encoding` says: corrupt gzip stream does not have a matching checksum."),
        ("nothing as gzip", "gzip", Vec::new(), 400,
            "The body is not the gzip that `content-encoding` says: incomplete deflate stream."),
        ("no zstd", "zstd", plain(), 400,
            "The body is not the zstd that `content-encoding` says: Unknown frame descriptor."),
        ("zstd cut short", "zstd", cut(zstd(&plain())), 400,
            "The body is not the zstd that `content-encoding` says: incomplete frame."),
        ("a gzip bomb", "gzip", gzip(&spaces), 413, too_large),
        ("a zstd bomb", "zstd", zstd(&spaces), 413, too_large),
        ("too large before", "gzip", spaces, 413,
            "The body has more than 10485760 bytes; send the events in parts."),
        ("another encoding", "br", plain(), 415,
            "`content-encoding: br` is not accepted; `gzip` and `zstd` are."),
        ("two encodings", "gzip, zstd", plain(), 415,
            "`content-encoding: gzip, zstd` is not accepted; `gzip` and `zstd` are."),
        ("no JSON inside", "gzip", gzip(b"{"), 400,
            "The body is not JSON: EOF while parsing an object at line 1 column 1."),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn every_badly_compressed_body_is_told_what_is_wrong() {
    let database = TestDatabase::create().await;
    let service = TestService::start(&database).await;
    for (case, encoding, body, status, sentence) in bad_compressions() {
        let answer = service.post_compressed(JSON, encoding, body).await;
        assert_refused(case, &answer, status, "", sentence);
    }
    assert_nothing_stored(&database).await;
}
