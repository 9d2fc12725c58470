//! One thing that is wrong with an input, said so that its sender can mend it.

/// A fault of one field of an event or a query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Where: a JSON pointer (RFC 6901) inside the item, `""` for the item as a whole.
    pub pointer: String,
    /// What kind of fault, a stable word for programs, such as `missing` or `out_of_range`.
    pub code: &'static str,
    /// What was wrong and what would be right, one sentence for people.
    pub detail: String,
}

impl Fault {
    /// A fault at `pointer`.
    pub fn new(pointer: impl Into<String>, code: &'static str, detail: impl Into<String>) -> Self {
        Self { pointer: pointer.into(), code, detail: detail.into() }
    }
}
