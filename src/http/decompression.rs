//! Bodies as they come in, decompressed on the way: what would be too large is never held.

use std::fmt;
use std::io::{self, Write};

use axum::http::{HeaderMap, header};
use flate2::write::MultiGzDecoder;
use zstd::stream::raw;
use zstd::stream::zio;

/// The largest window that a zstd frame may ask for, as a power of two: 8 MiB, the most that a
/// `content-encoding` may use (RFC 9659). A decoder sets it aside before the first byte is out.
const ZSTD_WINDOW_LOG_MAX: u32 = 23;

/// From here on a body gets room for the most that it may become: what it does not touch costs nothing,
/// while room that grows step by step is there twice with each step.
const LARGE_BYTES: usize = 1024 * 1024;

/// How a body is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Encoding {
    Identity,
    Gzip,
    Zstd,
}

/// A `content-encoding` that is not taken, as it was sent.
#[derive(Debug)]
pub(super) struct UnknownEncoding(pub(super) String);

impl Encoding {
    /// What the headers say.
    pub(super) fn of(headers: &HeaderMap) -> Result<Self, UnknownEncoding> {
        let named: Vec<&str> = headers
            .get_all(header::CONTENT_ENCODING)
            .iter()
            .map(|value| value.to_str().unwrap_or("?").trim())
            .collect();
        let named = named.join(", ");
        match named.to_ascii_lowercase().as_str() {
            "" | "identity" => Ok(Self::Identity),
            "gzip" | "x-gzip" => Ok(Self::Gzip),
            "zstd" => Ok(Self::Zstd),
            _ => Err(UnknownEncoding(named)),
        }
    }
}

impl fmt::Display for Encoding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Identity => "identity",
            Self::Gzip => "gzip",
            Self::Zstd => "zstd",
        })
    }
}

/// Why a body cannot be decompressed.
#[derive(Debug, thiserror::Error)]
pub(super) enum DecompressionError {
    /// It is, or becomes, too large.
    #[error("the body has more bytes than allowed")]
    TooLarge,
    /// It is not what its encoding says.
    #[error("the body is not {encoding}")]
    Damaged { encoding: Encoding, source: io::Error },
}

/// Takes a body piece by piece.
pub(super) struct Decompression {
    encoding: Encoding,
    decoder: Decoder,
}

enum Decoder {
    Identity(Bounded),
    Gzip(Box<MultiGzDecoder<Bounded>>),
    Zstd(Box<zio::Writer<Bounded, raw::Decoder<'static>>>),
}

impl Decompression {
    /// Begins a body that may have `bytes_max` when decompressed; room is made for `bytes_at_first`.
    pub(super) fn begin(
        encoding: Encoding,
        bytes_max: usize,
        bytes_at_first: usize,
    ) -> Result<Self, DecompressionError> {
        let bytes =
            Bounded { bytes: Vec::with_capacity(bytes_at_first), bytes_max, is_over: false };
        let decoder = match encoding {
            Encoding::Identity => Decoder::Identity(bytes),
            Encoding::Gzip => Decoder::Gzip(Box::new(MultiGzDecoder::new(bytes))),
            Encoding::Zstd => {
                let frames = zstd_frames()
                    .map_err(|source| DecompressionError::Damaged { encoding, source })?;
                Decoder::Zstd(Box::new(zio::Writer::new(bytes, frames)))
            }
        };
        Ok(Self { encoding, decoder })
    }

    /// Takes the next piece. After an error no more is taken.
    pub(super) fn take(&mut self, piece: &[u8]) -> Result<(), DecompressionError> {
        let outcome = match &mut self.decoder {
            Decoder::Identity(bytes) => bytes.write_all(piece),
            Decoder::Gzip(decoder) => decoder.write_all(piece),
            Decoder::Zstd(decoder) => decoder.write_all(piece),
        };
        outcome.map_err(|error| self.failure(error))
    }

    /// The body, once all of it has been taken.
    pub(super) fn finish(mut self) -> Result<Vec<u8>, DecompressionError> {
        let outcome = match &mut self.decoder {
            Decoder::Identity(_) => Ok(()),
            Decoder::Gzip(decoder) => decoder.try_finish(),
            Decoder::Zstd(decoder) => decoder.finish(),
        };
        outcome.map_err(|error| self.failure(error))?;
        Ok(std::mem::take(&mut self.bounded().bytes))
    }

    fn failure(&mut self, source: io::Error) -> DecompressionError {
        if self.bounded().is_over {
            return DecompressionError::TooLarge;
        }
        DecompressionError::Damaged { encoding: self.encoding, source }
    }

    fn bounded(&mut self) -> &mut Bounded {
        match &mut self.decoder {
            Decoder::Identity(bytes) => bytes,
            Decoder::Gzip(decoder) => decoder.get_mut(),
            Decoder::Zstd(decoder) => decoder.writer_mut(),
        }
    }
}

fn zstd_frames() -> io::Result<raw::Decoder<'static>> {
    let mut frames = raw::Decoder::new()?;
    frames.set_parameter(raw::DParameter::WindowLogMax(ZSTD_WINDOW_LOG_MAX))?;
    Ok(frames)
}

/// Bytes up to a bound.
struct Bounded {
    bytes: Vec<u8>,
    bytes_max: usize,
    /// Whether there would have been more.
    is_over: bool,
}

impl Write for Bounded {
    fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
        if piece.len() > self.bytes_max.saturating_sub(self.bytes.len()) {
            self.is_over = true;
            self.bytes = Vec::new();
            self.bytes_max = 0;
            return Err(io::Error::other("over the limit"));
        }
        let length = self.bytes.len() + piece.len();
        if length > self.bytes.capacity() && length > LARGE_BYTES {
            self.bytes.reserve_exact(self.bytes_max - self.bytes.len());
        }
        self.bytes.extend_from_slice(piece);
        Ok(piece.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
#[path = "decompression_tests.rs"]
mod tests;
