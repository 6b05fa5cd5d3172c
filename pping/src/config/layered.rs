//! The value of each option and where it is set: on the command line, else in the environment, else in the file.

use clap::{ArgMatches, FromArgMatches as _, parser::ValueSource};

use super::{
    definition::Definition,
    environment::Environment,
    error::{Error, Origin, SettingError},
    facts::{Capture, SCREEN},
    file::File,
    model::Config,
    options::Arguments,
    setting::Setting,
};

/// The option that has defaults of others, and its value that changes them.
const PROFILE: &str = "profile";
const SMALL: &str = "small";

/// All options, their values, and where those are set.
#[derive(Clone, Debug)]
pub struct Layered {
    pub(super) all: Vec<Setting>,
    /// Whether they are those of a screen, which shows what else needs an output.
    pub(super) has_screen: bool,
}

impl Layered {
    /// Takes the value of each option from the first layer that sets it.
    ///
    /// # Errors
    /// All errors of the environment and the file, or the first typed option that is rejected with `--read`.
    pub(super) fn new(
        matches: &ArgMatches,
        environment: &Environment,
        file: File,
        definitions: Vec<Definition>,
    ) -> Result<Self, Error> {
        let is_typed =
            |definition: &Definition| matches.value_source(definition.id()) == Some(ValueSource::CommandLine);
        let reads = definitions.iter().any(|definition| definition.key == "read" && is_typed(definition));
        let (mut from_file, mut errors) = (file.settings, Vec::new());
        let mut all = Vec::new();
        for definition in definitions {
            if is_typed(&definition) {
                if let (Capture::Rejected(reason), true) = (definition.facts.capture, reads) {
                    return Err(Error::NotForCaptures { option: format!("--{}", definition.key), reason });
                }
                all.push(Setting::typed(definition, matches));
                continue;
            }
            // The file of a service configures interfaces, which a capture does not have.
            if reads && !definition.applies_to_captures() {
                all.push(Setting::default(definition));
                continue;
            }
            match environment.setting(&definition) {
                Ok(Some(setting)) => all.push(setting),
                Ok(None) => match from_file.iter().position(|it| it.definition.key == definition.key) {
                    Some(index) => all.push(from_file.swap_remove(index)),
                    None if reads => all.push(Setting::capture_default(definition)),
                    None => all.push(Setting::default(definition)),
                },
                Err(error) => errors.push(error),
            }
        }
        errors.extend(file.errors);
        if errors.is_empty() { Ok(Self { all, has_screen: false }) } else { Err(Error::Invalid(errors)) }
    }

    /// Takes the values of a file alone.
    pub(super) fn of_file(mut settings: Vec<Setting>, definitions: Vec<Definition>) -> Self {
        let mut take = |definition: Definition| {
            let index = settings.iter().position(|it| it.definition.key == definition.key);
            index.map_or_else(|| Setting::default(definition), |index| settings.swap_remove(index))
        };
        Self { all: definitions.into_iter().map(&mut take).collect(), has_screen: false }.with_profile()
    }

    /// Sets `--profile small`, wherever another one is set.
    #[cfg(feature = "live")]
    pub(super) fn made_small(mut self) -> Self {
        for setting in self.all.iter_mut().filter(|setting| setting.definition.key == PROFILE) {
            setting.values = Some(vec![SMALL.into()]);
        }
        self.with_profile()
    }

    /// Gives the options that are not set the defaults of the profile.
    pub(super) fn with_profile(mut self) -> Self {
        let values = self.get(PROFILE).and_then(|setting| setting.values.as_ref());
        if values.is_some_and(|values| values.iter().any(|value| value == SMALL)) {
            self.all.iter_mut().for_each(Setting::take_small_default);
        }
        self
    }

    /// The setting of the option with this name.
    pub(super) fn get(&self, key: &str) -> Option<&Setting> {
        self.all.iter().find(|setting| setting.definition.key == key)
    }

    /// Whether the option with this name has a value.
    pub(super) fn has(&self, key: &str) -> bool {
        self.get(key).and_then(|setting| setting.values.as_ref()).is_some_and(|values| !values.is_empty())
    }

    /// The arguments, parsed as if all had been typed on the command line.
    pub(super) fn arguments(&self) -> Result<Arguments, Error> {
        let set = self.all.iter().filter(|setting| setting.is_set() || !setting.has_parser_default());
        let typed = set.flat_map(|setting| match &setting.values {
            Some(values) => setting.definition.to_arguments(values),
            None => Vec::new(),
        });
        let command = <Arguments as clap::CommandFactory>::command().no_binary_name(true);
        let arguments = command.try_get_matches_from(typed).and_then(|it| Arguments::from_arg_matches(&it));
        // Each value was checked by itself before, so this hardly ever fails.
        arguments.map_err(|error| Error::Arguments(error.to_string()))
    }

    /// Makes the configuration from all values.
    ///
    /// # Errors
    /// All values that contradict each other or have no effect.
    pub(super) fn config(&self) -> Result<Config, Error> {
        let useless = self.useless();
        match Config::new(self.arguments()?) {
            Ok(config) if useless.is_empty() => Ok(config),
            Ok(_) => Err(Error::Invalid(useless)),
            Err(found) => Err(Error::Invalid(self.locate(found).into_iter().chain(useless).collect())),
        }
    }

    /// The options that have no effect because none of the options that they need is set. A file may have them at their
    /// defaults, as that of `pping config show` does.
    fn useless(&self) -> Vec<SettingError> {
        let is_wanted = |setting: &Setting| setting.origin == Origin::Flag || !setting.has_parser_default();
        let set = self.all.iter().filter(|setting| setting.is_set() && is_wanted(setting));
        let is_there = |key: &str| match key {
            SCREEN => self.has_screen,
            key => self.get(key).is_some_and(Setting::is_set),
        };
        let useless = set.filter(|setting| {
            let needs = setting.definition.facts.needs;
            !needs.is_empty() && !needs.iter().any(|key| is_there(key))
        });
        let reads = self.has("read");
        let is_possible = |key: &str| {
            self.get(key).is_some_and(|setting| !reads || setting.definition.applies_to_captures())
        };
        let error = |setting: &Setting| {
            let needs = setting.definition.facts.needs.iter().filter(|key| is_possible(key));
            let needs: Vec<String> = needs.map(|key| format!("--{key}")).collect();
            let reason =
                format!("this has no effect without {}; set that too, or leave this out", needs.join(" or "));
            setting.error(reason)
        };
        useless.map(error).collect()
    }

    /// The origin of an option's value, if that is the environment or the file.
    pub fn origin(&self, key: &str) -> Option<&Origin> {
        let setting = self.get(key)?;
        (setting.is_set() && setting.origin != Origin::Flag).then_some(&setting.origin)
    }

    /// Replaces the origin of contradictions by the origin of the option's value.
    pub(super) fn locate(&self, mut found: Vec<SettingError>) -> Vec<SettingError> {
        for error in &mut found {
            let option = error.assignment.as_ref().map(|(option, _)| option.as_str());
            if let Some(setting) = option.and_then(|option| self.get(option)) {
                error.origin = setting.origin.clone();
                if matches!(setting.origin, Origin::File { .. }) {
                    error.assignment = Some(setting.assignment());
                }
            }
        }
        found
    }
}
