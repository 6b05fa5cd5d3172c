//! What `deploy/container/Containerfile` says of the image.

use std::{collections::BTreeMap, fs};

use anyhow::{Context as _, Result, bail, ensure};
use pping_chores::environment;

/// The image that the file describes: nothing but a program.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Containerfile {
    /// Path of the program, without the slash in front.
    pub(super) program: String,
    pub(super) user: String,
    pub(super) entrypoint: Vec<String>,
    pub(super) labels: BTreeMap<String, String>,
}

impl Containerfile {
    /// Reads the repository's file.
    pub(super) fn of_repository() -> Result<Self> {
        let file = environment::repository().join("deploy/container/Containerfile");
        let text = fs::read_to_string(&file)?;
        Self::parse(&text).with_context(|| format!("in {}", file.display()))
    }

    /// Reads a file's text.
    ///
    /// # Errors
    /// If it has an instruction that is not known here, because the image would lack what the instruction adds.
    fn parse(text: &str) -> Result<Self> {
        let (mut program, mut user, mut entrypoint, mut labels) = (None, None, None, BTreeMap::new());
        let lines = text.lines().filter(|line| !line.starts_with('#')).collect::<Vec<_>>().join("\n");
        for line in lines.replace("\\\n", " ").lines().filter(|line| !line.trim().is_empty()) {
            let (instruction, arguments) = line.split_once(' ').unwrap_or((line, ""));
            let arguments = arguments.trim();
            match instruction {
                "FROM" => ensure!(arguments == "scratch", "the image is built from {arguments}"),
                "COPY" => {
                    let to = arguments.strip_prefix("--chmod=0755 pping /");
                    let to = to.with_context(|| format!("COPY {arguments}: only the program is copied"))?;
                    ensure!(program.replace(to.to_owned()).is_none(), "two files are copied");
                }
                "USER" => user = Some(arguments.to_owned()),
                "ENTRYPOINT" => entrypoint = Some(serde_json::from_str(arguments)?),
                "LABEL" => add_labels(arguments, &mut labels)?,
                _ => bail!("{instruction}: an image is not made with this instruction"),
            }
        }
        Ok(Self {
            program: program.context("no program is copied")?,
            user: user.context("no USER")?,
            entrypoint: entrypoint.context("no ENTRYPOINT")?,
            labels,
        })
    }
}

/// Reads `NAME="VALUE" ...`. Values are quoted as in JSON.
fn add_labels(mut text: &str, labels: &mut BTreeMap<String, String>) -> Result<()> {
    while !text.is_empty() {
        let (name, rest) = text.split_once('=').with_context(|| format!("LABEL {text}: no value"))?;
        let mut values = serde_json::Deserializer::from_str(rest).into_iter::<String>();
        let value = values.next().with_context(|| format!("LABEL {name}: no value"))?;
        labels.insert(name.to_owned(), value.with_context(|| format!("LABEL {name}"))?);
        text = rest[values.byte_offset()..].trim_start();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_are_read_as_engines_read_them() {
        let text = "# LABEL no=\"label\"\nFROM scratch\n\nCOPY --chmod=0755 pping /bin/pping\nUSER 1:2\n\
                    ENTRYPOINT [\"/bin/pping\", \"-v\"]\nLABEL a.b=\"one = 1\" \\\n      c=\"\\\"\"\n";
        let labels = [("a.b", "one = 1"), ("c", "\"")];
        let expected = Containerfile {
            program: "bin/pping".to_owned(),
            user: "1:2".to_owned(),
            entrypoint: vec!["/bin/pping".to_owned(), "-v".to_owned()],
            labels: labels.map(|(name, value)| (name.to_owned(), value.to_owned())).into(),
        };
        assert_eq!(Containerfile::parse(text).unwrap(), expected);
        // The image would lack the variable.
        let error = Containerfile::parse(&format!("{text}ENV A=b\n")).unwrap_err();
        assert!(error.to_string().starts_with("ENV"), "{error}");
    }

    #[test]
    fn the_repository_has_such_a_file() {
        let file = Containerfile::of_repository().unwrap();
        assert_eq!(file.entrypoint, [format!("/{}", file.program)]);
        assert_eq!(file.user, "65534:65534");
        assert_eq!(file.labels["org.opencontainers.image.licenses"], "MIT OR Apache-2.0");
    }
}
