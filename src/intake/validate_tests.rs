use super::*;

/// A sale whose fields are JSON texts by name.
struct Sale(Vec<(String, String)>);

fn a_sale() -> Sale {
    let fields = [
        ("order_id", r#""1001""#),
        ("status", r#""placed""#),
        ("amount", r#""20.00""#),
        ("event_time", r#""2026-10-01T09:05:00Z""#),
    ];
    Sale(fields.map(|(name, json)| (name.to_owned(), json.to_owned())).into())
}

impl Sale {
    /// Writes `json` as the value of `name`; an empty text leaves the field out.
    fn with(mut self, name: &str, json: &str) -> Self {
        self.0.retain(|(known, _)| known != name);
        if !json.is_empty() {
            self.0.push((name.to_owned(), json.to_owned()));
        }
        self
    }

    fn json(&self) -> String {
        let members: Vec<_> =
            self.0.iter().map(|(name, json)| format!("\"{name}\":{json}")).collect();
        format!("{{{}}}", members.join(","))
    }
}

fn checked(json: &str) -> Result<IdentifiedEvent, InvalidItem> {
    let defaults = EventDefaults { currency: "USD".parse().expect("a currency") };
    let limits = BodyLimits::default();
    let body = format!("[{json}]");
    let items = events(body.as_bytes(), BodyFormat::Json, &defaults, &limits).expect(json);
    items.into_iter().next().expect("one item").outcome
}

fn faults_of(json: &str) -> Vec<(String, &'static str)> {
    let faults = checked(json).err().map(|item| item.faults).unwrap_or_default();
    faults.into_iter().map(|fault| (fault.pointer, fault.code)).collect()
}

/// What a field holds, and the code that it is refused with.
type Refused = (&'static str, &'static str, &'static str);

const BAD_IDS: &[Refused] = &[
    ("event_id", r#""""#, "empty"),
    ("event_id", "17", "wrong_type"),
    ("event_id", r#"["e-1"]"#, "wrong_type"),
    ("event_id", r#""a\u0000b""#, "invalid"),
    ("event_id", r#""\ud800""#, "invalid"),
    ("order_id", "", "missing"),
    ("order_id", "null", "missing"),
    ("order_id", r#""""#, "empty"),
    ("order_id", "true", "wrong_type"),
    ("order_id", "{}", "wrong_type"),
    ("order_id", "1.0", "invalid"),
    ("order_id", "1e3", "invalid"),
    ("order_id", "-0", "invalid"),
    ("order_id", r#""\u0000""#, "invalid"),
    ("order_id", r#""\udc00\ud800""#, "invalid"),
    ("status", "", "missing"),
    ("status", "null", "missing"),
    ("status", r#""""#, "empty"),
    ("status", "1", "wrong_type"),
    ("status", r#"["placed"]"#, "wrong_type"),
    ("store_id", "7", "wrong_type"),
    ("store_id", r#""""#, "empty"),
    ("till_id", "false", "wrong_type"),
    ("till_id", r#""\u0000""#, "invalid"),
    ("customer_id", "{}", "wrong_type"),
    ("customer_id", r#""x\uDBFF""#, "invalid"),
];

const BAD_AMOUNTS: &[Refused] = &[
    ("amount", "", "missing"),
    ("amount", "null", "missing"),
    ("amount", r#""""#, "empty"),
    ("amount", "true", "wrong_type"),
    ("amount", "[20]", "wrong_type"),
    ("amount", r#""NaN""#, "invalid"),
    ("amount", r#""Infinity""#, "invalid"),
    ("amount", "1e400", "invalid"),
    ("amount", "1e3", "invalid"),
    ("amount", r#""1e3""#, "invalid"),
    ("amount", "1.00001", "invalid"),
    ("amount", r#""1.00001""#, "invalid"),
    ("amount", r#""1,50""#, "invalid"),
    ("amount", r#""$20""#, "invalid"),
    ("amount", r#"" 20""#, "invalid"),
    ("amount", r#""+20""#, "invalid"),
    ("amount", r#""0x10""#, "invalid"),
    ("amount", r#""٢٠""#, "invalid"),
    ("amount", r#""\ud800""#, "invalid"),
    ("amount", "100000000000000", "out_of_range"),
    ("amount", "-100000000000000.00", "out_of_range"),
    ("amount", "9007199254740993", "out_of_range"),
    ("amount", r#""99999999999999999999999999""#, "out_of_range"),
];

const BAD_TIMES: &[Refused] = &[
    ("event_time", "", "missing"),
    ("event_time", "null", "missing"),
    ("event_time", r#""""#, "empty"),
    ("event_time", "1790845500", "wrong_type"),
    ("event_time", "1790845500.5", "wrong_type"),
    ("event_time", r#"{"seconds":1}"#, "wrong_type"),
    ("event_time", r#""1790845500""#, "invalid"),
    ("event_time", r#""2026-10-01""#, "invalid"),
    ("event_time", r#""2026-10-01T09:05:00""#, "invalid"),
    ("event_time", r#""2026-10-01 09:05:00Z""#, "invalid"),
    ("event_time", r#""2026-10-01T09:05:00 02:00""#, "invalid"),
    ("event_time", r#""2026-10-01T24:00:00Z""#, "invalid"),
    ("event_time", r#""2026-12-31T23:59:60Z""#, "invalid"),
    ("event_time", r#""2026-02-30T09:05:00Z""#, "invalid"),
    ("event_time", r#""2026-13-01T09:05:00Z""#, "invalid"),
    ("event_time", r#""10000-01-01T00:00:00Z""#, "invalid"),
    ("event_time", r#""infinity""#, "invalid"),
    ("event_time", r#""1899-12-31T23:59:59Z""#, "out_of_range"),
    ("event_time", r#""2200-01-01T00:00:00Z""#, "out_of_range"),
    ("event_time", r#""0001-01-01T00:00:00Z""#, "out_of_range"),
];

const BAD_OTHERS: &[Refused] = &[
    ("currency", r#""""#, "empty"),
    ("currency", r#""usd""#, "invalid"),
    ("currency", r#""XYZ""#, "invalid"),
    ("currency", r#""EURO""#, "invalid"),
    ("currency", "978", "wrong_type"),
    ("item_count", "-1", "out_of_range"),
    ("item_count", "9223372036854775808", "out_of_range"),
    ("item_count", "1.5", "invalid"),
    ("item_count", "1e2", "invalid"),
    ("item_count", r#""2""#, "wrong_type"),
    ("item_count", "[]", "wrong_type"),
    ("attributes", "[]", "wrong_type"),
    ("attributes", r#""web""#, "wrong_type"),
    ("attributes", "1e400", "wrong_type"),
    ("attributes", r#"{"\ud800":"x"}"#, "invalid"),
    ("discount", "1", "unknown_field"),
    ("Amount", "1", "unknown_field"),
    ("events", "[]", "unknown_field"),
];

/// An item, and all the faults that it is refused with.
type RefusedItem = (&'static str, &'static str, &'static [(&'static str, &'static str)]);

const BAD_ITEMS: &[RefusedItem] = &[
    ("a string", r#""sale""#, &[("", "wrong_type")]),
    ("half a character", r#""\ud800""#, &[("", "wrong_type")]),
    ("a number no float can hold", "1e400", &[("", "wrong_type")]),
    ("null", "null", &[("", "wrong_type")]),
    ("a list of events", "[{}]", &[("", "wrong_type")]),
    (
        "nothing that is required",
        "{}",
        &[
            ("/order_id", "missing"),
            ("/status", "missing"),
            ("/amount", "missing"),
            ("/event_time", "missing"),
        ],
    ),
    (
        "a fault in every field",
        r#"{"event_id":1,"order_id":1.5,"status":"","amount":"x","event_time":5,"currency":"usd",
            "customer_id":[],"store_id":{},"till_id":true,"item_count":-1,"attributes":"","x/~":0}"#,
        &[
            ("/x~1~0", "unknown_field"),
            ("/event_id", "wrong_type"),
            ("/order_id", "invalid"),
            ("/status", "empty"),
            ("/amount", "invalid"),
            ("/event_time", "wrong_type"),
            ("/currency", "invalid"),
            ("/store_id", "wrong_type"),
            ("/till_id", "wrong_type"),
            ("/customer_id", "wrong_type"),
            ("/item_count", "out_of_range"),
            ("/attributes", "wrong_type"),
        ],
    ),
    (
        "a field written twice, once with its letters escaped",
        r#"{"order_id":"1","status":"paid","\u0073tatus":"paid","amount":1,
            "event_time":"2026-10-01T09:05:00Z"}"#,
        &[("/status", "duplicate_key")],
    ),
    (
        "a null and a value for one field",
        r#"{"order_id":null,"order_id":"1","status":"paid","amount":1,
            "event_time":"2026-10-01T09:05:00Z"}"#,
        &[("/order_id", "duplicate_key")],
    ),
    (
        "a field whose name is no text",
        r#"{"order_id":"1","status":"paid","amount":1,"\ud800":1,
            "event_time":"2026-10-01T09:05:00Z"}"#,
        &[("", "invalid")],
    ),
    (
        "both names of the amount",
        r#"{"order_id":"1","status":"paid","amount":1,"total":1,
            "event_time":"2026-10-01T09:05:00Z"}"#,
        &[("/total", "conflicting_fields")],
    ),
    (
        "a bad amount under its other name",
        r#"{"order_id":"1","status":"paid","total":"1e3","event_time":"2026-10-01T09:05:00Z"}"#,
        &[("/total", "invalid")],
    ),
    (
        "a fault in every attribute",
        r#"{"order_id":"1","status":"paid","amount":1,"event_time":"2026-10-01T09:05:00Z",
            "attributes":{"":"x","n":1,"z":null,"o":{},"nul":"\u0000","\u0000":"x","s":"\ud800",
            "t":"1","t":"2","a/b":[]}}"#,
        &[
            ("/attributes/", "empty"),
            ("/attributes/n", "wrong_type"),
            ("/attributes/z", "wrong_type"),
            ("/attributes/o", "wrong_type"),
            ("/attributes/nul", "invalid"),
            ("/attributes/\0", "invalid"),
            ("/attributes/s", "invalid"),
            ("/attributes/t", "duplicate_key"),
            ("/attributes/a~1b", "wrong_type"),
        ],
    ),
];

#[test]
fn a_field_that_is_wrong_is_named_with_the_kind_of_its_fault() {
    for (name, value, code) in [BAD_IDS, BAD_AMOUNTS, BAD_TIMES, BAD_OTHERS].concat() {
        let json = a_sale().with(name, value).json();
        assert_eq!(faults_of(&json), [(format!("/{name}"), code)], "{name}: {value}");
    }
}

#[test]
fn all_that_is_wrong_with_an_item_is_told_at_once() {
    for (case, json, expected) in BAD_ITEMS {
        let faults = faults_of(json);
        let faults: Vec<_> =
            faults.iter().map(|(pointer, code)| (pointer.as_str(), *code)).collect();
        assert_eq!(faults, *expected, "{case}");
    }
}

#[test]
fn a_text_may_be_as_long_as_its_bound_and_no_longer() {
    let long = |chars: usize| format!("\"{}\"", "é".repeat(chars));
    let attribute = |name: usize, value: usize| {
        format!("{{\"{}\":\"{}\"}}", "n".repeat(name), "é".repeat(value))
    };
    let attributes = |count: usize| {
        let members: Vec<_> = (0..count).map(|number| format!("\"a{number}\":\"\"")).collect();
        format!("{{{}}}", members.join(","))
    };
    for (name, fits, too_long, pointer, code) in [
        ("event_id", long(200), long(201), "/event_id", "too_long"),
        ("order_id", long(200), long(201), "/order_id", "too_long"),
        ("order_id", "9".repeat(200), "9".repeat(201), "/order_id", "too_long"),
        ("status", long(64), long(65), "/status", "too_long"),
        ("store_id", long(200), long(201), "/store_id", "too_long"),
        ("till_id", long(200), long(201), "/till_id", "too_long"),
        ("customer_id", long(200), long(201), "/customer_id", "too_long"),
        ("attributes", attribute(1, 256), attribute(1, 257), "/attributes/n", "too_long"),
        ("attributes", attribute(64, 0), attribute(65, 0), "/attributes", "too_long"),
        ("attributes", attributes(32), attributes(33), "/attributes", "too_many"),
    ] {
        assert_eq!(faults_of(&a_sale().with(name, &fits).json()), [], "{name} at its bound");
        let faults = faults_of(&a_sale().with(name, &too_long).json());
        assert_eq!(faults, [(pointer.to_owned(), code)], "{name} beyond it");
    }
}

#[test]
fn an_event_may_have_64_kib_and_no_more() {
    let bare = a_sale().with("note", r#""""#).json().len();
    let of_bytes =
        |bytes: usize| a_sale().with("note", &format!("\"{}\"", "x".repeat(bytes - bare)));
    assert_eq!(faults_of(&of_bytes(65_536).json()), [("/note".to_owned(), "unknown_field")]);
    for bytes in [65_537, 66_560, 9_000_000] {
        assert_eq!(faults_of(&of_bytes(bytes).json()), [(String::new(), "too_large")], "{bytes}");
    }
}

#[test]
fn an_event_at_the_edge_of_the_rules_is_taken_exactly() {
    for (name, json, read) in [
        ("order_id", "9007199254740993", "9007199254740993"),
        ("order_id", "-17", "-17"),
        ("order_id", "0", "0"),
        ("order_id", r#""1.0""#, "1.0"),
        ("order_id", r#"" 1 ""#, " 1 "),
        ("order_id", r#""\ud83d\ude00""#, "😀"),
    ] {
        let accepted = checked(&a_sale().with(name, json).json()).expect(json);
        assert_eq!(accepted.event.order_id.as_str(), read, "{json}");
    }
    for (json, units) in [
        ("90071992547409.93", 900_719_925_474_099_300),
        ("900719925474.0993", 9_007_199_254_740_993),
        ("0.1", 1_000),
        ("-0", 0),
        ("-0.0", 0),
        ("-4.50", -45_000),
        (r#""12.3456""#, 123_456),
        ("1.00000000000000000000", 10_000),
        ("99999999999999.9999", 999_999_999_999_999_999),
    ] {
        let accepted = checked(&a_sale().with("amount", json).json()).expect(json);
        assert_eq!(accepted.event.amount.as_ten_thousandths(), units, "{json}");
    }
}

#[test]
fn what_an_event_leaves_out_is_filled_in_or_stays_out() {
    let optional =
        ["event_id", "currency", "store_id", "till_id", "customer_id", "item_count", "attributes"];
    let bare = checked(&a_sale().json()).expect("a sale");
    assert_eq!(bare.event.currency.code(), "USD");
    assert_eq!(bare.event.item_count, None);
    assert_eq!(bare.event.attributes, Attributes::default());
    for name in optional {
        let with_null = checked(&a_sale().with(name, "null").json()).expect(name);
        assert_eq!(with_null, bare, "{name}: null is the same as nothing");
    }
    let total = a_sale().with("amount", "null").with("total", "20");
    assert_eq!(checked(&total.json()), Ok(bare), "total stands in for a null amount");
}

#[test]
fn a_refused_item_keeps_the_id_that_its_till_knows_it_by() {
    for (json, event_id) in [
        (r#"{"event_id":"e-1"}"#, Some("e-1")),
        (r#"{"event_id":""}"#, None),
        (r#"{"event_id":7}"#, None),
        ("{}", None),
        ("[]", None),
    ] {
        let refused = checked(json).expect_err(json);
        assert_eq!(refused.event_id.as_deref(), event_id, "{json}");
    }
}

#[test]
fn a_fault_says_what_was_wrong_and_what_would_be_right() {
    let long = format!("\"{}\"", "9".repeat(5_000));
    for (name, json, detail) in [
        (
            "event_time",
            "5",
            "`event_time` is a number; epoch numbers are refused, write an RFC 3339 time with an offset in a string, such as `2026-10-01T09:05:00Z`",
        ),
        (
            "event_time",
            r#""2026-10-01T09:05:00""#,
            "`event_time` `2026-10-01T09:05:00` has no UTC offset; end it with `Z` or an offset such as `+02:00`",
        ),
        (
            "status",
            "null",
            "`status` is null, but it is required: a string such as `placed`, 1 to 64 characters",
        ),
        ("order_id", "", "`order_id` is required: a string of 1 to 200 characters, or an integer"),
        (
            "amount",
            &long,
            "`amount` `9999999999999999999999999999999999999999…` is out of bounds; its magnitude must be below 100000000000000",
        ),
        (
            "discount",
            "1",
            "`discount` is no field of an event; the fields are event_id, order_id, status, amount, total, event_time, currency, customer_id, store_id, till_id, item_count, attributes",
        ),
    ] {
        let refused = checked(&a_sale().with(name, json).json()).expect_err(json);
        assert_eq!(refused.faults[0].detail, detail);
    }
}
