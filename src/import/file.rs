//! What is imported: files and standard input, decompressed as they are read.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use flate2::bufread::MultiGzDecoder;

use super::ImportError;
use crate::config::RowFormat;

const BUFFER_BYTES: usize = 64 * 1024;
const GZIP_MAGIC: [u8; 2] = [0x1F, 0x8B];
const ZSTD_MAGIC: [u8; 4] = [0x28, 0xB5, 0x2F, 0xFD];
/// Of a zstd frame to be skipped, the first byte has any low half (RFC 8878, section 3.1.2).
const ZSTD_SKIPPABLE_MAGIC: [u8; 3] = [0x2A, 0x4D, 0x18];

/// One input, and how its events are written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Input {
    source: Source,
    pub(super) format: RowFormat,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Source {
    File(PathBuf),
    StandardInput,
}

/// An input that is being read, decompressed.
pub(super) struct OpenInput {
    pub(super) bytes: Box<dyn Read + Send>,
    /// How much of it has been read, before decompression.
    pub(super) bytes_read: Arc<AtomicU64>,
    /// How much there is to read, before decompression, where that is known.
    pub(super) bytes_total: Option<u64>,
}

impl Input {
    /// The input of this name; `-` is standard input. `format` wins over the name's ending.
    pub(super) fn named(name: &Path, format: Option<RowFormat>) -> Result<Self, ImportError> {
        let source = match name.to_str() {
            Some("-") => Source::StandardInput,
            Some(_) | None => Source::File(name.to_owned()),
        };
        match format.or_else(|| format_of(name)) {
            Some(format) => Ok(Self { source, format }),
            None => Err(ImportError::UnknownFormat { file: source.to_string() }),
        }
    }

    pub(super) fn is_standard_input(&self) -> bool {
        self.source == Source::StandardInput
    }

    /// Whether it can be opened twice: pipes cannot.
    pub(super) fn is_regular_file(&self) -> bool {
        self.path().is_some_and(Path::is_file)
    }

    pub(super) fn path(&self) -> Option<&Path> {
        match &self.source {
            Source::File(path) => Some(path),
            Source::StandardInput => None,
        }
    }

    /// Where its rejected rows go unless set.
    pub(super) fn rejected_file(&self) -> PathBuf {
        let mut name = match &self.source {
            Source::File(path) => path.clone().into_os_string(),
            Source::StandardInput => "stdin".into(),
        };
        name.push(".rejected");
        name.into()
    }

    /// Opens it and looks how it is compressed.
    pub(super) fn open(&self) -> Result<OpenInput, ImportError> {
        self.try_open().map_err(|source| self.unreadable("from its beginning".to_owned(), source))
    }

    /// The failure to read on at some place.
    pub(super) fn unreadable(&self, place: String, source: io::Error) -> ImportError {
        ImportError::Read { file: self.to_string(), place, source }
    }

    fn try_open(&self) -> io::Result<OpenInput> {
        let (raw, bytes_total): (Box<dyn Read + Send>, _) = match &self.source {
            Source::File(path) => {
                let file = File::open(path)?;
                let metadata = file.metadata()?;
                // Opening a folder succeeds; reading it would say so less clearly.
                if metadata.is_dir() {
                    return Err(io::ErrorKind::IsADirectory.into());
                }
                (Box::new(file), metadata.is_file().then_some(metadata.len()))
            }
            Source::StandardInput => (Box::new(io::stdin()), None),
        };
        let bytes_read = Arc::new(AtomicU64::new(0));
        let counted = Counted { raw, bytes_read: Arc::clone(&bytes_read) };
        Ok(OpenInput { bytes: decompressed(counted)?, bytes_read, bytes_total })
    }
}

impl std::fmt::Display for Input {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.source.fmt(f)
    }
}

impl std::fmt::Display for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::File(path) => path.display().fmt(f),
            Self::StandardInput => f.write_str("standard input"),
        }
    }
}

/// Whether two names mean the same file, as far as they mean one that exists.
pub(super) fn are_same(one: &Path, other: &Path) -> bool {
    one == other
        || fs::canonicalize(one)
            .ok()
            .is_some_and(|one| fs::canonicalize(other).is_ok_and(|other| one == other))
}

/// What the ending of a name says, one of a compression left aside.
fn format_of(name: &Path) -> Option<RowFormat> {
    let name = name.file_name()?.to_str()?.to_ascii_lowercase();
    let plain = [".gz", ".zst", ".zstd"].iter().find_map(|ending| name.strip_suffix(ending));
    match plain.unwrap_or(&name).rsplit_once('.')?.1 {
        "ndjson" | "jsonl" => Some(RowFormat::NdJson),
        "csv" => Some(RowFormat::Csv),
        _ => None,
    }
}

/// Counts what is read.
struct Counted {
    raw: Box<dyn Read + Send>,
    bytes_read: Arc<AtomicU64>,
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.raw.read(buffer)?;
        self.bytes_read.fetch_add(length as u64, Ordering::Relaxed);
        Ok(length)
    }
}

/// The bytes, decompressed where their first ones say that they are compressed.
fn decompressed(mut raw: Counted) -> io::Result<Box<dyn Read + Send>> {
    let mut first = [0; ZSTD_MAGIC.len()];
    let mut length = 0;
    // A pipe may hand over less than asked for.
    while length < first.len() {
        match raw.read(&mut first[length..]) {
            Ok(0) => break,
            Ok(read) => length += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    let (magic, skippable) = (&first[..length], &first[1..]);
    let bytes = BufReader::with_capacity(
        BUFFER_BYTES,
        io::Cursor::new(first).take(length as u64).chain(raw),
    );
    let is_skippable =
        length == first.len() && first[0] & 0xF0 == 0x50 && skippable == ZSTD_SKIPPABLE_MAGIC;
    if magic.starts_with(&GZIP_MAGIC) {
        return Ok(Box::new(MultiGzDecoder::new(bytes)));
    }
    if magic == ZSTD_MAGIC || is_skippable {
        return Ok(Box::new(zstd::stream::read::Decoder::with_buffer(bytes)?));
    }
    Ok(Box::new(bytes))
}

/// Skips a byte order mark, which editors and spreadsheets put before text.
pub(super) fn skip_byte_order_mark(bytes: &mut impl BufRead) -> io::Result<()> {
    const MARK: &[u8] = b"\xEF\xBB\xBF";
    // The buffer is empty at the beginning, so that this is as much as one read brings.
    if bytes.fill_buf()?.starts_with(MARK) {
        bytes.consume(MARK.len());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_says_how_its_events_are_written() {
        for (name, format) in [
            ("a.ndjson", Some(RowFormat::NdJson)),
            ("a.jsonl.gz", Some(RowFormat::NdJson)),
            ("till.7.CSV", Some(RowFormat::Csv)),
            ("a.csv.zst", Some(RowFormat::Csv)),
            ("a.csv.zstd", Some(RowFormat::Csv)),
            ("a.json", None),
            ("a.gz", None),
            ("csv", None),
            ("-", None),
        ] {
            assert_eq!(format_of(Path::new(name)), format, "{name}");
            let forced = Input::named(Path::new(name), Some(RowFormat::Csv)).expect("forced");
            assert_eq!(forced.format, RowFormat::Csv, "{name}");
        }
    }

    #[test]
    fn bytes_are_decompressed_by_what_they_begin_with() {
        let text = b"one\ntwo\n";
        let frame = zstd::encode_all(&text[..], 1).unwrap();
        let skipped = [b"\x5A\x2A\x4D\x18\x01\0\0\0x".as_slice(), &frame].concat();
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        io::Write::write_all(&mut gzip, text).unwrap();
        let gzip = gzip.finish().unwrap();
        for (case, bytes, expected) in [
            ("nothing", Vec::new(), b"".as_slice()),
            ("one byte", b"1".to_vec(), b"1"),
            ("plain", text.to_vec(), text),
            ("gzip", gzip.clone(), text),
            ("two gzip members", [gzip.clone(), gzip].concat(), b"one\ntwo\none\ntwo\n"),
            ("zstd", frame.clone(), text),
            ("zstd after a frame to be skipped", skipped, text),
        ] {
            let raw = Counted { raw: Box::new(io::Cursor::new(bytes)), bytes_read: Arc::default() };
            let mut read = Vec::new();
            decompressed(raw).unwrap().read_to_end(&mut read).unwrap();
            assert_eq!(read, expected, "{case}");
        }
    }
}
