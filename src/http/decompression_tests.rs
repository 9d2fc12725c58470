use std::io::Write as _;

use super::*;

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(bytes).expect("memory");
    encoder.finish().expect("memory")
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    zstd::encode_all(bytes, 3).expect("memory")
}

/// The body in pieces of `piece_bytes`.
fn decompressed(
    encoding: Encoding,
    body: &[u8],
    piece_bytes: usize,
    bytes_max: usize,
) -> Result<Vec<u8>, String> {
    let mut decompression = Decompression::begin(encoding, bytes_max, 0).expect("memory");
    let taken = body.chunks(piece_bytes).try_for_each(|piece| decompression.take(piece));
    taken.and_then(|()| decompression.finish()).map_err(|error| match error {
        DecompressionError::TooLarge => "too large".to_owned(),
        DecompressionError::Damaged { source, .. } => source.to_string(),
    })
}

#[test]
fn a_body_is_the_same_in_every_encoding_and_however_it_is_cut() {
    let text: Vec<u8> = (0..200_000_u32).flat_map(|number| number.to_le_bytes()).collect();
    let halves = text.split_at(text.len() / 2);
    for (case, encoding, body) in [
        ("plain", Encoding::Identity, text.clone()),
        ("gzip", Encoding::Gzip, gzip(&text)),
        ("gzip in two members", Encoding::Gzip, [gzip(halves.0), gzip(halves.1)].concat()),
        ("zstd", Encoding::Zstd, zstd(&text)),
        ("zstd in two frames", Encoding::Zstd, [zstd(halves.0), zstd(halves.1)].concat()),
    ] {
        for piece_bytes in [1, 7, 8_192, usize::MAX] {
            let read = decompressed(encoding, &body, piece_bytes, text.len());
            assert!(
                read.as_ref() == Ok(&text),
                "{case} in pieces of {piece_bytes}: {:?}",
                read.err()
            );
        }
        let over = decompressed(encoding, &body, 8_192, text.len() - 1);
        assert_eq!(over, Err("too large".to_owned()), "{case}");
    }
}

#[test]
fn an_empty_text_may_be_compressed_but_nothing_is_not() {
    assert_eq!(decompressed(Encoding::Gzip, &gzip(b""), 9, 9), Ok(Vec::new()));
    assert_eq!(decompressed(Encoding::Zstd, &zstd(b""), 9, 9), Ok(Vec::new()));
    assert!(decompressed(Encoding::Gzip, b"", 9, 9).is_err());
    assert!(decompressed(Encoding::Zstd, b"", 9, 9).is_err());
}

#[test]
fn damage_is_told_and_never_taken_for_the_end() {
    let text = b"[]".repeat(5_000);
    for (encoding, body) in [(Encoding::Gzip, gzip(&text)), (Encoding::Zstd, zstd(&text))] {
        let with_rest = [&body[..], b"[]"].concat();
        for (case, damaged) in [
            ("plain text", &text[..]),
            ("cut short", &body[..body.len() - 1]),
            ("cut in half", &body[..body.len() / 2]),
            ("something after the end", &with_rest),
        ] {
            let read = decompressed(encoding, damaged, 8_192, text.len());
            assert!(read.is_err_and(|error| error != "too large"), "{encoding}: {case}");
        }
    }
    let mut flipped = gzip(&text);
    let last = flipped.len() - 5;
    flipped[last] ^= 1;
    assert!(decompressed(Encoding::Gzip, &flipped, 8_192, text.len()).is_err(), "a wrong checksum");
}

#[test]
fn a_zstd_frame_cannot_ask_for_more_memory_than_its_window_may_have() {
    let mut encoder = zstd::Encoder::new(Vec::new(), 1).expect("memory");
    encoder.set_parameter(raw::CParameter::WindowLog(27)).expect("a window");
    encoder.write_all(b"[]").expect("memory");
    encoder.flush().expect("memory");
    let body = encoder.finish().expect("memory");
    let error = decompressed(Encoding::Zstd, &body, 8_192, 100).expect_err("a window of 128 MiB");
    assert!(error.contains("too much memory"), "{error}");
}
