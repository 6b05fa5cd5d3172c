//! The configuration, from the command line, the environment and a file.
//!
//! [`options`] defines each option. [`Loader`] makes a [`Config`] at the start and at each reload: [`layered`] decides which
//! of the three sources wins, and [`build`] checks that the values go together. The rest of the program knows only
//! [`Config`]. [`reload`] and [`follow`] change it while pping runs.

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
mod inside;
mod joined;
mod layered;
mod loader;
mod methods;
mod model;
mod options;
mod overwritten;
mod reload;
mod setting;
mod show;
#[cfg(test)]
mod tests;
mod values;

#[cfg(feature = "top")]
pub(crate) use self::endpoint::port;
#[cfg(feature = "history")]
pub(crate) use self::values::{history_disk, history_keep};
pub(crate) use self::values::{interface, leading_zero, network, without_host_bits};
pub use self::{
    check::check,
    endpoint::Endpoint,
    error::{Error, Origin, SettingError},
    follow::Changes,
    grouping::NETWORK,
    inside::{Inside, InsideItem},
    layered::Layered,
    loader::{DEFAULT_FILE, Loaded, Loader},
    model::{Aggregation, Config, HistoryLimits, Live, Otlp},
    options::Arguments,
    reload::Change,
    values::{
        Arms, Format, HistoryKeep, Ingress, MethodName, Profile, RemoteBy, RttType, TcpMethod, Temporality,
        Tunnel,
    },
};
