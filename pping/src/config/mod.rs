//! The configuration, from the command line, the environment and a file.
//!
//! [`options`] defines each option. [`Loader`] makes a [`Config`] of the values that are set, as often as needed: [`layered`]
//! decides between the three places, [`build`] checks how values go together, and [`Config`] is what the rest of the program
//! knows. [`reload`] and [`follow`] are what changes while pping runs.

mod build;
mod check;
pub(crate) mod definition;
mod endpoint;
mod environment;
mod error;
mod facts;
mod file;
mod follow;
mod grouping;
mod layered;
mod loader;
mod methods;
mod model;
mod options;
mod otlp;
mod reload;
mod setting;
mod show;
#[cfg(test)]
mod tests;
mod values;

pub(crate) use self::values::interface;
pub use self::{
    check::check,
    endpoint::Endpoint,
    error::{Error, Mistake, Origin},
    follow::Changes,
    layered::Layered,
    loader::{DEFAULT_FILE, Loaded, Loader},
    model::{Aggregation, Config, Live, Otlp},
    options::Arguments,
    reload::Change,
    values::{Format, Ingress, MethodName, RttType, TcpMethod, Temporality, Tunnel},
};
