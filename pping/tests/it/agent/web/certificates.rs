//! Certificates from authorities that only these tests trust.

use std::{fs, path::Path};

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};

/// A certificate authority.
pub(in crate::agent) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
}

impl Authority {
    pub(in crate::agent) fn new(name: &str) -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let pem = params.self_signed(&key).unwrap().pem();
        Self { issuer: Issuer::new(params, key), pem }
    }

    /// Writes the authority's own certificate.
    pub(in crate::agent) fn write(&self, file: &Path) {
        fs::write(file, &self.pem).unwrap();
    }

    /// Writes `stem.pem` and `stem.key` for these names.
    pub(in crate::agent) fn issue(&self, directory: &Path, stem: &str, names: &[&str]) {
        let key = KeyPair::generate().unwrap();
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        let certificate = CertificateParams::new(names).unwrap().signed_by(&key, &self.issuer).unwrap();
        fs::write(directory.join(format!("{stem}.pem")), certificate.pem()).unwrap();
        fs::write(directory.join(format!("{stem}.key")), key.serialize_pem()).unwrap();
    }
}
