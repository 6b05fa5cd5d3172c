//! Certificates and keys in PEM.

use std::path::Path;

use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use super::{
    files::Files,
    invalid::{Invalid, Text},
};
use crate::trust;

/// Text in PEM, with the value that it came from.
pub(super) struct Pem<'a> {
    bytes: Vec<u8>,
    value: &'a Text,
    from: String,
}

impl<'a> Pem<'a> {
    /// Reads the text from the value `name`, or from the file that `name_file` gives.
    pub(super) fn read(
        name: &str,
        text: Option<&'a Text>,
        file: Option<&'a Text>,
        directory: &Path,
        files: &mut Files,
    ) -> Result<Option<Self>, Invalid> {
        let is_given = |it: &&Text| !it.value.is_empty();
        match (text.filter(is_given), file.filter(is_given)) {
            (None, None) => Ok(None),
            (Some(value), None) => {
                Ok(Some(Self { bytes: value.value.clone().into_bytes(), value, from: name.to_owned() }))
            }
            (None, Some(value)) => {
                let path = directory.join(&value.value);
                let from = format!("{name}_file {}", path.display());
                match files.read(&path) {
                    Ok(bytes) => Ok(Some(Self { bytes, value, from })),
                    Err(error) => Err(Invalid::at(value, format!("{from}: {error}"))),
                }
            }
            (Some(_), Some(value)) => {
                Err(Invalid::at(value, format!("{name} is given as well; remove one of the two")))
            }
        }
    }

    pub(super) fn invalid(&self, reason: impl AsRef<str>) -> Invalid {
        Invalid::at(self.value, format!("{}: {}", self.from, reason.as_ref()))
    }

    /// Returns all certificates, at least one.
    pub(super) fn certificates(&self) -> Result<Vec<CertificateDer<'static>>, Invalid> {
        trust::certificates(&self.bytes).map_err(|reason| self.invalid(reason))
    }

    pub(super) fn key(&self) -> Result<PrivateKeyDer<'static>, Invalid> {
        trust::key(&self.bytes).map_err(|reason| self.invalid(reason))
    }
}
