//! Certificates and keys in PEM.

use std::path::Path;

use rustls::pki_types::{
    CertificateDer, PrivateKeyDer,
    pem::{Error as PemError, PemObject as _},
};

use super::{
    files::Files,
    invalid::{Invalid, Text},
};

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
        let all: Result<Vec<_>, PemError> = CertificateDer::pem_slice_iter(&self.bytes).collect();
        let all = all.map_err(|error| self.invalid(format!("this is not PEM: {error}")))?;
        if all.is_empty() {
            return Err(self.invalid("it contains no certificate in PEM"));
        }
        Ok(all)
    }

    pub(super) fn key(&self) -> Result<PrivateKeyDer<'static>, Invalid> {
        PrivateKeyDer::from_pem_slice(&self.bytes).map_err(|error| match error {
            PemError::NoItemsFound => self.invalid("it contains no private key in PEM that is not encrypted"),
            error => self.invalid(format!("this is not PEM: {error}")),
        })
    }
}
