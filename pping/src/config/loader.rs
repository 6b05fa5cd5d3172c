//! Making the configuration: at the start, and again at each SIGHUP.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
};

use clap::{ArgMatches, CommandFactory as _, parser::ValueSource};

use super::{
    definition::Definition, environment::Environment, error::Error, file::File, layered::Layered,
    model::Config, options::Arguments, show,
};

/// The file of the service, which is read if no file is named.
pub const DEFAULT_FILE: &str = "/etc/pping/pping.toml";

/// Makes the configuration from the command line, the environment and the file, which is read again each time.
#[derive(Clone, Debug)]
pub struct Loader {
    matches: ArgMatches,
    environment: Environment,
    has_screen: bool,
}

/// A configuration, and the origins of its values.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The configuration.
    pub config: Config,
    /// The values with their origins.
    pub layered: Layered,
}

impl Loader {
    /// Takes the command line as parsed by [`Arguments`], and the variables of the environment.
    pub fn new(matches: ArgMatches, environment: impl IntoIterator<Item = (OsString, OsString)>) -> Self {
        Self { matches, environment: Environment::new(environment), has_screen: false }
    }

    /// Makes configurations for a screen from now on.
    #[cfg(feature = "top")]
    pub(crate) fn for_viewing(self) -> Self {
        Self { has_screen: true, ..self }
    }

    /// Takes these arguments, beginning with the program's name, and an empty environment.
    ///
    /// # Errors
    /// If the arguments are invalid.
    pub fn typed(
        arguments: impl IntoIterator<Item = impl Into<OsString> + Clone>,
    ) -> Result<Self, clap::Error> {
        Ok(Self::new(Arguments::command().try_get_matches_from(arguments)?, []))
    }

    /// Makes the configuration.
    ///
    /// # Errors
    /// All errors in the environment and the file, or options that contradict each other.
    pub fn load(&self) -> Result<Loaded, Error> {
        let (layered, file) = self.settings()?;
        if !layered.has("interface") && !layered.has("read") {
            let was_read = file.is_some();
            return Err(Error::NoSource { file: file.unwrap_or_else(|| DEFAULT_FILE.into()), was_read });
        }
        Ok(Loaded { config: layered.config()?, layered })
    }

    /// Reads the values of all options. Returns the file that was read, too.
    fn settings(&self) -> Result<(Layered, Option<PathBuf>), Error> {
        let definitions = Definition::all();
        self.environment.warn_of_unknown(&definitions);
        let (file, path) = self.file(&definitions)?;
        let layered = Layered::new(&self.matches, &self.environment, file, definitions)?;
        Ok((Layered { has_screen: self.has_screen, ..layered }.with_profile(), path))
    }

    /// Makes the configuration even if it names nothing to measure. Returns the file that was read, too.
    ///
    /// # Errors
    /// Those of [`Self::load`], except for a missing source.
    pub fn load_without_source(&self) -> Result<(Config, Option<PathBuf>), Error> {
        let (layered, file) = self.settings()?;
        Ok((layered.config()?, file))
    }

    /// Makes the configuration that it would be with `--profile small`.
    ///
    /// # Errors
    /// Those of [`Self::load`], except for a missing source.
    #[cfg(feature = "live")]
    pub(crate) fn load_small(&self) -> Result<Config, Error> {
        self.settings()?.0.made_small().config()
    }

    /// Writes all options as a configuration file, with the origin of each.
    ///
    /// # Errors
    /// Those of [`Self::load`].
    pub fn show(&self) -> Result<String, Error> {
        let (settings, file) = self.settings()?;
        settings.config()?;
        Ok(show::show(&settings, file.as_deref()))
    }

    /// Reads the file that is named, or that of the service.
    fn file(&self, definitions: &[Definition]) -> Result<(File, Option<PathBuf>), Error> {
        let named = definitions.iter().find(|definition| definition.id() == "config");
        let named = named.and_then(|definition| {
            let typed = self.matches.get_raw(definition.id()).and_then(|mut values| values.next());
            typed.or_else(|| self.environment.get(definition)).map(PathBuf::from)
        });
        if let Some(path) = named {
            return File::read(&path, definitions).map(|file| (file, Some(path)));
        }
        // A run by hand should not take the port and the output of the service.
        let is_typed = |id| self.matches.value_source(id) == Some(ValueSource::CommandLine);
        if is_typed("interfaces") || is_typed("read") {
            return Ok((File::default(), None));
        }
        match File::read(Path::new(DEFAULT_FILE), definitions) {
            Ok(file) => Ok((file, Some(DEFAULT_FILE.into()))),
            Err(Error::Open { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {
                Ok((File::default(), None))
            }
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn the_file_is_read_again_and_the_command_line_stays() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let path = file.path().to_str().unwrap();
        let loader = Loader::typed(["pping", "--config", path, "--max-flows", "7"]).unwrap();
        fs::write(path, "interface = [\"eth0\"]\nverbose = 1\n").unwrap();
        let mut old = loader.load().unwrap().config;
        assert_eq!((old.max_flows, old.verbosity, old.rules.rate_limit), (7, 1, 100_000_000));

        fs::write(path, "interface = [\"eth0\"]\nmax-flows = 9\nrate-limit = \"1s\"\n").unwrap();
        let new = loader.load().unwrap().config;
        assert_eq!((new.max_flows, new.verbosity, new.rules.rate_limit), (7, 0, 1_000_000_000));
        assert_eq!(old.follow(&new).restart, ["rate-limit"]);

        fs::write(path, "interface = [\"eth0\"]\nrate-limit = \"fast\"\n").unwrap();
        let message = loader.load().unwrap_err().to_string();
        assert!(message.starts_with(&format!("{path}:2:14: rate-limit = \"fast\": ")), "{message}");
        fs::write(path, "").unwrap();
        assert!(matches!(loader.load(), Err(Error::NoSource { .. })));
        fs::remove_file(path).unwrap();
        assert!(matches!(loader.load(), Err(Error::Open { .. })));
    }

    #[test]
    fn a_capture_gives_every_sample_unless_a_limit_is_set() {
        let limit = |arguments: &[&str], variables: &[(&str, &str)]| {
            let matches = Arguments::command().try_get_matches_from(arguments).unwrap();
            let variables = variables.iter().map(|&(name, value)| (name.into(), value.into()));
            let loader = Loader::new(matches, variables);
            let shown = loader.show().unwrap();
            let line = shown.lines().find(|line| line.starts_with("rate-limit")).unwrap().to_owned();
            (
                loader.load().unwrap().config.rules.rate_limit,
                line.split_whitespace().collect::<Vec<_>>().join(" "),
            )
        };
        let expected = |limit, line: &str| (limit, line.to_owned());
        let read = ["pping", "-r", "trace.pcap"];
        assert_eq!(
            limit(&["pping", "-i", "eth0"], &[]),
            expected(100_000_000, "rate-limit = \"100ms\" # default")
        );
        assert_eq!(limit(&read, &[]), expected(0, "rate-limit = \"0\" # default"));
        assert_eq!(
            limit(&read, &[("PPING_RATE_LIMIT", "2s")]),
            expected(2_000_000_000, "rate-limit = \"2s\" # PPING_RATE_LIMIT")
        );
        let typed = [&read[..], &["--rate-limit", "100ms"]].concat();
        assert_eq!(limit(&typed, &[]), expected(100_000_000, "rate-limit = \"100ms\" # command line"));
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), "rate-limit = \"100ms\"\n").unwrap();
        let typed = [&read[..], &["--config", file.path().to_str().unwrap()]].concat();
        assert_eq!(limit(&typed, &[]).0, 100_000_000);
    }

    #[test]
    fn the_environment_is_that_of_the_start() {
        let matches = Arguments::command().try_get_matches_from(["pping", "-i", "eth0"]).unwrap();
        let variables = [("PPING_MAX_FLOWS", "7"), ("PPING_BPF_LOG", "true"), ("OTHER_MAX_FLOWS", "8")];
        let loader = Loader::new(matches, variables.map(|(name, value)| (name.into(), value.into())));
        let config = loader.load().unwrap().config;
        // --bpf-log implies -vv.
        assert_eq!((config.max_flows, config.verbosity), (7, 2));
    }
}
