//! A copy of pping that every user may run.

use std::{fs, os::unix::fs::PermissionsExt as _, path::PathBuf};

use tempfile::TempDir;

use super::monitor::{PPING, tool};

/// A copy outside the target directory, which other users may be unable to enter. Dropping it deletes it.
pub(super) struct Copy {
    _directory: TempDir,
    pub(super) program: PathBuf,
}

impl Copy {
    pub(super) fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let program = directory.path().join("pping");
        // Another process makes the copy. A child forked by this process meanwhile would inherit the file open for
        // writing, and the copy could not be run (ETXTBSY).
        let (copied, said) = tool("cp", &[PPING, program.to_str().unwrap()]);
        assert!(copied, "{said}");
        for path in [directory.path(), &program] {
            fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
        }
        Self { _directory: directory, program }
    }
}
