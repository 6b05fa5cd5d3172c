//! Files that pping would write over while it reads them.

use std::{
    fs,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

use super::SettingError;

/// Options and the files that they name, if they are given.
type Files<'a> = [(&'static str, Option<&'a Path>)];

/// The error of an output that is an input or another output, maybe by another name.
pub(super) fn overwritten(inputs: &Files<'_>, outputs: &Files<'_>) -> Option<SettingError> {
    outputs.iter().enumerate().find_map(|(number, &(option, path))| {
        let path = path?;
        let mut others = inputs.iter().chain(&outputs[..number]);
        let (other, _) = others.find(|(_, other)| other.is_some_and(|it| is_same(it, path)))?;
        let reason = format!("it is the file of --{other}, which this would overwrite; give another one");
        Some(SettingError::contradiction(option, path.display().to_string(), &reason))
    })
}

/// Whether two paths lead to the same regular file, or would once it is made. Pipes and devices can be shared.
fn is_same(one: &Path, other: &Path) -> bool {
    match [one, other].map(fs::metadata) {
        [Ok(one), Ok(other)] => one.is_file() && (one.dev(), one.ino()) == (other.dev(), other.ino()),
        [Err(_), Err(_)] => made(one).is_some_and(|made_one| Some(made_one) == made(other)),
        _ => false,
    }
}

/// Where a file that does not exist yet would be made; nothing if its folder does not exist either.
fn made(path: &Path) -> Option<PathBuf> {
    let folder = path.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new("."));
    Some(folder.canonicalize().ok()?.join(path.file_name()?))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn an_output_is_no_input_and_no_other_output() {
        let folder = tempfile::tempdir().unwrap();
        let [capture, link, new] = ["capture", "link", "new"].map(|name| folder.path().join(name));
        fs::write(&capture, "packets").unwrap();
        symlink(&capture, &link).unwrap();
        let said = |read: &Path, write: &Path, log: &Path| {
            let outputs = [("write", Some(write)), ("hdr-log", Some(log))];
            overwritten(&[("read", Some(read)), ("groups", None)], &outputs).map(|error| error.to_string())
        };
        let overwrites = |option: &str, path: &Path, other: &str| {
            let path = path.display();
            Some(format!(
                "--{option} {path}: it is the file of --{other}, which this would overwrite; give another one"
            ))
        };
        let log = folder.path().join("log");
        assert_eq!(said(&capture, &new, &log), None);
        assert_eq!(said(&capture, &link, &log), overwrites("write", &link, "read"));
        assert_eq!(said(&capture, &new, &capture), overwrites("hdr-log", &capture, "read"));
        assert_eq!(said(&capture, &new, &new), overwrites("hdr-log", &new, "write"));
        symlink(folder.path(), folder.path().join("same")).unwrap();
        let by_another_name = folder.path().join("same/new");
        assert_eq!(said(&capture, &new, &by_another_name), overwrites("hdr-log", &by_another_name, "write"));
        assert_eq!(said(&capture, Path::new("/dev/null"), Path::new("/dev/null")), None);
    }
}
