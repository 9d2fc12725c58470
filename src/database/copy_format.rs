//! Postgres's binary copy format, tuple by tuple.

use super::DatabaseError;
use super::values::unreadable;
use crate::domain::{Amount, EventTime};

/// The signature, flags, and the length of a header extension that nobody uses.
const HEADER: &[u8; 19] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";
/// 2000-01-01T00:00:00Z, from which Postgres counts.
pub(super) const POSTGRES_EPOCH_MICROS: i64 = 946_684_800_000_000;
const NUMERIC_NEGATIVE: i16 = 0x4000;
const NUMERIC_BASE: i64 = 10_000;
/// Digits of the largest amount, a little below 10^18 ten-thousandths.
const NUMERIC_DIGITS_MAX: usize = 5;
/// Decimals of an amount.
const NUMERIC_SCALE: i16 = 4;
/// Before each field.
const LENGTH_BYTES: usize = 4;

/// Cuts a stream of messages into tuples. Messages mostly hold whole tuples, but need not.
#[derive(Debug, Default)]
pub(super) struct TupleReader {
    began: bool,
    /// What was left of the messages so far.
    left: Vec<u8>,
}

impl TupleReader {
    /// Hands every whole tuple of `message`, after what was left before it, to `take`.
    pub(super) fn read(
        &mut self,
        message: &[u8],
        mut take: impl FnMut(Tuple<'_>) -> Result<(), DatabaseError>,
    ) -> Result<(), DatabaseError> {
        let joined;
        let mut bytes = message;
        if !self.left.is_empty() {
            self.left.extend_from_slice(message);
            joined = std::mem::take(&mut self.left);
            bytes = &joined;
        }
        if !self.began {
            let Some(rest) = bytes.get(HEADER.len()..) else {
                self.left = bytes.to_vec();
                return Ok(());
            };
            (self.began, bytes) = (true, rest);
        }
        while let Some((tuple, rest)) = split_tuple(bytes) {
            take(tuple)?;
            bytes = rest;
        }
        self.left = bytes.to_vec();
        Ok(())
    }
}

/// The first whole tuple, and what stands after it. The trailer, a count of -1, is none.
fn split_tuple(bytes: &[u8]) -> Option<(Tuple<'_>, &[u8])> {
    let (count, body) = bytes.split_first_chunk()?;
    let mut rest = body;
    for _ in 0..i16::from_be_bytes(*count) {
        let (length, after) = rest.split_first_chunk()?;
        // -1 is null: no bytes follow.
        let length = usize::try_from(i32::from_be_bytes(*length)).unwrap_or(0);
        rest = after.get(length..)?;
    }
    let is_trailer = i16::from_be_bytes(*count) < 0;
    let tuple = Tuple(body.get(..body.len() - rest.len())?);
    (!is_trailer).then_some((tuple, rest))
}

/// The fields of one tuple that are still to be read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tuple<'message>(&'message [u8]);

impl<'message> Tuple<'message> {
    /// The bytes of the fields that are still to be read, lengths included.
    pub(super) const fn rest(&self) -> &'message [u8] {
        self.0
    }

    fn field(&mut self, what: &'static str) -> Result<Option<&'message [u8]>, DatabaseError> {
        let missing = || unreadable(what, "the tuple ends before it");
        let (length, after) = self.0.split_first_chunk().ok_or_else(missing)?;
        let Ok(length) = usize::try_from(i32::from_be_bytes(*length)) else {
            self.0 = after;
            return Ok(None);
        };
        let (field, rest) = after.split_at_checked(length).ok_or_else(missing)?;
        self.0 = rest;
        Ok(Some(field))
    }

    /// A `bigint`.
    pub(super) fn integer(&mut self, what: &'static str) -> Result<Option<i64>, DatabaseError> {
        let Some(bytes) = self.field(what)? else { return Ok(None) };
        let bytes = bytes.try_into().map_err(|error| unreadable(what, error))?;
        Ok(Some(i64::from_be_bytes(bytes)))
    }

    /// A `timestamptz` that is not null.
    pub(super) fn time(&mut self, what: &'static str) -> Result<EventTime, DatabaseError> {
        let micros = self.integer(what)?.ok_or_else(|| unreadable(what, "it is null"))?;
        Ok(EventTime::from_micros(micros.saturating_add(POSTGRES_EPOCH_MICROS)))
    }

    /// A `text`.
    pub(super) fn text(
        &mut self,
        what: &'static str,
    ) -> Result<Option<&'message str>, DatabaseError> {
        let Some(bytes) = self.field(what)? else { return Ok(None) };
        std::str::from_utf8(bytes).map(Some).map_err(|error| unreadable(what, error))
    }

    /// A `numeric(18, 4)`.
    pub(super) fn amount(&mut self, what: &'static str) -> Result<Option<Amount>, DatabaseError> {
        let Some(bytes) = self.field(what)? else { return Ok(None) };
        let amount = ten_thousandths(bytes).and_then(Amount::from_ten_thousandths);
        amount.map(Some).ok_or_else(|| unreadable(what, "it is out of bounds"))
    }
}

/// A `numeric` in ten-thousandths: four numbers of 16 bits (count of digits, weight of the first,
/// sign, digits shown), then digits to the base of 10,000. So the digit of weight -1 counts
/// ten-thousandths.
fn ten_thousandths(bytes: &[u8]) -> Option<i64> {
    let mut numbers = bytes.as_chunks::<2>().0.iter().map(|pair| i16::from_be_bytes(*pair));
    let (count, weight, sign, _) =
        (numbers.next()?, numbers.next()?, numbers.next()?, numbers.next()?);
    let mut sum: i64 = 0;
    for index in 0..count {
        // Digits of a lower weight than -1 would be smaller than any amount.
        let places = u32::try_from(weight.checked_sub(index)?.checked_add(1)?).ok()?;
        let digit = i64::from(numbers.next()?).checked_mul(NUMERIC_BASE.checked_pow(places)?)?;
        sum = sum.checked_add(digit)?;
    }
    match sign {
        0 => Some(sum),
        NUMERIC_NEGATIVE => sum.checked_neg(),
        // NaN and the infinities.
        _ => None,
    }
}

/// Writes tuples for `copy … from stdin`.
#[derive(Debug)]
pub(super) struct TupleWriter {
    bytes: Vec<u8>,
    /// Where the fields of each tuple begin.
    starts: Vec<usize>,
}

impl Default for TupleWriter {
    fn default() -> Self {
        Self { bytes: HEADER.to_vec(), starts: Vec::new() }
    }
}

impl TupleWriter {
    /// Begins a tuple of so many fields, which follow.
    pub(super) fn begin(&mut self, fields: i16) {
        self.bytes.extend(fields.to_be_bytes());
        self.starts.push(self.bytes.len());
    }

    /// A null.
    pub(super) fn null(&mut self) {
        self.bytes.extend((-1_i32).to_be_bytes());
    }

    /// A `bytea`, or a `text` in UTF-8.
    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        self.length(bytes.len());
        self.bytes.extend(bytes);
    }

    /// A `text` or a null.
    pub(super) fn optional(&mut self, text: Option<&str>) {
        match text {
            Some(text) => self.bytes(text.as_bytes()),
            None => self.null(),
        }
    }

    /// A `bigint`.
    pub(super) fn integer(&mut self, number: i64) {
        self.bytes(&number.to_be_bytes());
    }

    /// A `timestamptz`.
    pub(super) fn time(&mut self, time: EventTime) {
        self.integer(postgres_micros(time));
    }

    /// A `jsonb`: its version, then its text.
    pub(super) fn json(&mut self, text: &str) {
        self.length(1 + text.len());
        self.bytes.push(1);
        self.bytes.extend(text.as_bytes());
    }

    /// A `numeric(18, 4)`; see [`ten_thousandths`].
    pub(super) fn amount(&mut self, amount: Amount) {
        let units = amount.as_ten_thousandths();
        let sign = if units < 0 { NUMERIC_NEGATIVE } else { 0 };
        // The digit of the lowest weight, -1, comes first here.
        let mut digits = [0_i16; NUMERIC_DIGITS_MAX];
        let (mut rest, mut count) = (units.unsigned_abs(), 0_i16);
        for digit in &mut digits {
            if rest == 0 {
                break;
            }
            *digit = i16::try_from(rest % NUMERIC_BASE.unsigned_abs()).unwrap_or(0);
            (rest, count) = (rest / NUMERIC_BASE.unsigned_abs(), count + 1);
        }
        let used = usize::from(count.unsigned_abs());
        self.length(8 + 2 * used);
        let weight = if count == 0 { 0 } else { count - 2 };
        let head = [count, weight, sign, NUMERIC_SCALE];
        for number in head.iter().chain(digits[..used].iter().rev()) {
            self.bytes.extend(number.to_be_bytes());
        }
    }

    /// Changes a `bigint` of a tuple whose fields before it are of eight bytes, all of them.
    pub(super) fn set_integer(&mut self, tuple: usize, field: usize, number: i64) {
        const FIELD: usize = LENGTH_BYTES + size_of::<i64>();
        let at = self.starts[tuple] + field * FIELD + LENGTH_BYTES;
        self.bytes[at..at + size_of::<i64>()].copy_from_slice(&number.to_be_bytes());
    }

    /// The same of a `timestamptz`.
    pub(super) fn set_time(&mut self, tuple: usize, field: usize, time: EventTime) {
        self.set_integer(tuple, field, postgres_micros(time));
    }

    /// The whole message.
    pub(super) fn finish(mut self) -> Vec<u8> {
        self.bytes.extend((-1_i16).to_be_bytes());
        self.bytes
    }

    fn length(&mut self, bytes: usize) {
        // A field comes from one request, so it is far shorter.
        self.bytes.extend(i32::try_from(bytes).unwrap_or(i32::MAX).to_be_bytes());
    }
}

const fn postgres_micros(time: EventTime) -> i64 {
    time.as_micros().saturating_sub(POSTGRES_EPOCH_MICROS)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A message of one tuple with these fields.
    fn message(fields: &[Option<&[u8]>]) -> Vec<u8> {
        let mut bytes = vec![0; HEADER.len()];
        bytes.extend(i16::try_from(fields.len()).expect("few").to_be_bytes());
        for field in fields {
            let length = field.map_or(-1, |field| i32::try_from(field.len()).expect("short"));
            bytes.extend(length.to_be_bytes());
            bytes.extend(field.unwrap_or_default());
        }
        bytes.extend((-1_i16).to_be_bytes());
        bytes
    }

    #[test]
    fn tuples_are_read_wherever_the_messages_are_cut() {
        let whole = message(&[Some(&7_i64.to_be_bytes()), None, Some("é".as_bytes())]);
        for cut in 0..=whole.len() {
            let mut reader = TupleReader::default();
            let mut read = Vec::new();
            for part in [&whole[..cut], &whole[cut..]] {
                let take = |mut tuple: Tuple<'_>| {
                    read.push((
                        tuple.integer("a")?,
                        tuple.integer("b")?,
                        tuple.text("c")?.map(str::to_owned),
                    ));
                    assert!(tuple.rest().is_empty());
                    Ok(())
                };
                reader.read(part, take).expect("a good message");
            }
            assert_eq!(read, [(Some(7), None, Some("é".to_owned()))], "cut at {cut}");
        }
    }

    #[test]
    fn a_numeric_is_read_exactly_or_not_at_all() {
        for (case, numbers, units) in [
            ("0", vec![0, 0, 0, 4], Some(0)),
            ("20.00", vec![1, 0, 0, 2, 20], Some(200_000)),
            ("30.5", vec![2, 0, 0, 1, 30, 5_000], Some(305_000)),
            ("-4.50", vec![2, 0, NUMERIC_NEGATIVE, 2, 4, 5_000], Some(-45_000)),
            ("0.0001", vec![1, -1, 0, 4, 1], Some(1)),
            ("10000", vec![1, 1, 0, 0, 1], Some(100_000_000)),
            (
                "99999999999999.9999",
                vec![5, 3, 0, 4, 99, 9_999, 9_999, 9_999, 9_999],
                Some(999_999_999_999_999_999),
            ),
            ("0.00001", vec![1, -2, 0, 5, 1_000], None),
            ("NaN", vec![0, 0, -16_384, 0], None),
            ("cut off", vec![2, 0, 0, 1, 30], None),
        ] {
            let bytes: Vec<u8> =
                numbers.iter().flat_map(|number: &i16| number.to_be_bytes()).collect();
            assert_eq!(ten_thousandths(&bytes), units, "{case}");
        }
    }

    #[test]
    fn what_is_written_reads_back() {
        let units = [
            0,
            1,
            -1,
            9_999,
            10_000,
            -45_000,
            100_000_000,
            999_999_999_999_999_999,
            -999_999_999_999_999_999,
        ];
        for units in units {
            let amount = Amount::from_ten_thousandths(units).expect("in bounds");
            let time = EventTime::from_micros(units);
            let mut writer = TupleWriter::default();
            writer.begin(6);
            writer.integer(0);
            writer.time(EventTime::from_micros(0));
            writer.amount(amount);
            writer.optional(Some("é"));
            writer.null();
            writer.json("{}");
            writer.set_integer(0, 0, units);
            writer.set_time(0, 1, time);
            let mut read = 0;
            let take = |mut tuple: Tuple<'_>| {
                assert_eq!(tuple.integer("a")?, Some(units));
                assert_eq!(tuple.time("b")?, time);
                assert_eq!(tuple.amount("c")?, Some(amount));
                assert_eq!(tuple.text("d")?, Some("é"));
                assert_eq!(tuple.text("e")?, None);
                assert_eq!(tuple.text("f")?, Some("\u{1}{}"));
                read += 1;
                Ok(())
            };
            TupleReader::default().read(&writer.finish(), take).expect("a good message");
            assert_eq!(read, 1);
        }
    }
}
