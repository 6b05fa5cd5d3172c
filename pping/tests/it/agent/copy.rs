//! pping where everybody may run it.

use std::{fs, os::unix::fs::PermissionsExt as _, path::PathBuf};

use tempfile::TempDir;

use super::monitor::{PPING, tool};

/// A copy of pping that nobody may run, in both senses: the target directory may be closed to others.
pub(super) struct Copy {
    _directory: TempDir,
    pub(super) program: PathBuf,
}

impl Copy {
    pub(super) fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let program = directory.path().join("pping");
        // Not by this process: what a test beside this one starts would inherit the file, open for writing, and
        // nobody can run a file that is.
        let (copied, said) = tool("cp", &[PPING, program.to_str().unwrap()]);
        assert!(copied, "{said}");
        for path in [directory.path(), &program] {
            fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
        }
        Self { _directory: directory, program }
    }
}
