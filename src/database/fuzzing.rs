//! What Postgres sends in its binary copy format, as bytes that can be anything.

use super::copy_format::{TupleReader, TupleWriter};

/// Reads tuples from a message and from the same message in two pieces: the same comes out. What was
/// read as an amount, a time and a text is written and read again.
pub(crate) fn copied_tuples(bytes: &[u8]) {
    let Some((&cut, message)) = bytes.split_first() else { return };
    let header = TupleWriter::default().finish();
    let message = [&header[..header.len() - size_of::<i16>()], message].concat();
    let (one, other) = message.split_at(message.len().min(usize::from(cut)));
    assert_eq!(fields(&[&message]), fields(&[one, other]));
}

/// What each tuple holds, read as every kind of field in turn.
fn fields(pieces: &[&[u8]]) -> Vec<String> {
    let (mut reader, mut read) = (TupleReader::default(), Vec::new());
    for piece in pieces {
        let outcome = reader.read(piece, |tuple| {
            let (mut amounts, mut integers, mut times, mut texts) = (tuple, tuple, tuple, tuple);
            let amount = amounts.amount("an amount");
            if let Ok(Some(amount)) = amount {
                let mut writer = TupleWriter::default();
                writer.begin(1);
                writer.amount(amount);
                let written = writer.finish();
                let mut again = None;
                let _ = TupleReader::default().read(&written, |mut tuple| {
                    again = tuple.amount("the amount again")?;
                    Ok(())
                });
                assert_eq!(again, Some(amount));
            }
            read.push(format!(
                "{:?} {:?} {:?} {:?} {:?}",
                amount.ok(),
                integers.integer("an integer").ok(),
                times.time("a time").ok(),
                texts.text("a text").ok(),
                tuple.rest(),
            ));
            Ok(())
        });
        assert!(outcome.is_ok(), "reading hands on what `take` says alone");
    }
    read
}
