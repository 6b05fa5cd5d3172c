//! Values with their positions in the file.

use serde_saphyr::Spanned;

/// A string with its position.
pub(super) type Text = Spanned<String>;

/// An invalid value, with its position in the file.
#[derive(Debug)]
pub(super) struct Invalid {
    /// From 1.
    pub(super) line: u64,
    /// In characters, from 1.
    pub(super) column: u64,
    /// The error, and a correct value.
    pub(super) reason: String,
}

impl Invalid {
    /// Returns an error at the position of a value.
    pub(super) fn at<T>(value: &Spanned<T>, reason: impl Into<String>) -> Self {
        let position = value.referenced;
        Self { line: position.line(), column: position.column(), reason: reason.into() }
    }
}
