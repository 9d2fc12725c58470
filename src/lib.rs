//! Tillmark.
