//! `pping check`: whether pping can run here, and what limits its accuracy. It changes nothing.

mod arms;
mod attached;
mod bridge;
mod flow_tables;
mod inside;
mod interface;
mod kernel;
mod memory;
mod methods;
mod mirror;
mod name;
mod offloads;
#[cfg(feature = "otlp")]
mod otlp;
mod pins;
mod privileges;
mod programs;
mod report;
mod residence;
#[cfg(test)]
mod schema;
mod shell;
mod table;

use std::{
    collections::BTreeMap,
    io::{self, IsTerminal as _},
};

use anstream::{AutoStream, ColorChoice};

use self::{
    mirror::Traffic,
    name::Name,
    report::{Check, Report, Status},
};
use crate::{
    Error,
    cli::CheckArguments,
    config::{self, Arguments, Config, Loader},
    features,
    kernel::{
        features::Features,
        inspect::{
            flow_tables::flow_tables,
            links::{self, Interface},
        },
        selection::Selection,
    },
    set_verbosity,
};

/// Makes all checks. Returns the report as text, and the verdict: [`Error::Unfit`] if pping cannot run.
///
/// # Errors
/// If the command line is invalid, or a check could not be made.
pub(crate) fn perform(loader: &Loader, asked: CheckArguments) -> Result<(String, Result<(), Error>), Error> {
    let CheckArguments { json, arguments } = asked;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let report = runtime.block_on(report(loader, arguments))?;
    let text = if json {
        serde_json::to_string_pretty(&report).map_err(io::Error::other)? + "\n"
    } else {
        let is_coloured = AutoStream::choice(&io::stdout()) != ColorChoice::Never;
        table::table(&report, columns(), is_coloured)
    };
    let verdict =
        if report.ok { Ok(()) } else { Err(Error::Unfit { missing: report.titles(Status::Missing) }) };
    Ok((text, verdict))
}

/// Columns of the terminal, if it is one.
fn columns() -> Option<usize> {
    let stdout = io::stdout();
    let size = stdout.is_terminal().then(|| terminal_size::terminal_size_of(&stdout)).flatten();
    size.map(|(width, _)| usize::from(width.0))
}

/// Makes all checks.
async fn report(loader: &Loader, arguments: Arguments) -> Result<Report, Error> {
    let captures = config::Error::NotForCaptures {
        option: "check".to_owned(),
        reason: "captures are measured without the kernel's help",
    };
    if arguments.read.is_some() {
        return Err(captures.into());
    }
    let (config, configuration) = configuration(loader, arguments)?;
    set_verbosity(config.verbosity);
    if config.capture.is_some() {
        return Err(captures.into());
    }
    let live = &config.live;
    // How much passes while the other checks are made, shows mirror ports.
    let before = links::links().await?;
    let capabilities = privileges::capabilities();
    let may_load = capabilities.status == Status::Ok;
    let mut checks =
        vec![kernel::release(), capabilities, configuration, methods::methods(config.rules.methods)];
    let (features, found) = programs::features(may_load);
    checks.extend(features);
    let loaded = programs::programs(&config, may_load);
    checks.extend(loaded.checks);
    let small = || {
        let config = loader.load_small().ok()?;
        Some((programs::size_of_maps(&config)?.taken, config.max_flows))
    };
    checks.extend([kernel::statistics(), memory::memory(loaded.memory, &config, small)]);
    checks.extend(memory::memlock(loaded.memory));
    checks.push(kernel::clock());
    checks.push(residence::residence(live.residence));
    checks.extend(live.mirror.then(mirror::socket));
    checks.extend(live.pin.as_deref().map(|directory| pins::pins(directory, found)));
    if let Err(missing) = features::check(live) {
        checks.push(Check::missing(
            Name::Otlp,
            missing.to_string(),
            "leave --otlp out: pping does not start with it",
        ));
    }
    #[cfg(feature = "otlp")]
    if let Some(settings) = &live.otlp {
        checks.push(otlp::otlp(settings).await);
    }

    checks.extend(of_interfaces(&config, &before, found).await?);
    Ok(Report::new(checks))
}

/// Makes the checks of all interfaces to watch. `before` are the interfaces when the check began, `found` the features of the
/// kernel, if they are known.
async fn of_interfaces(
    config: &Config,
    before: &[Interface],
    found: Option<Features>,
) -> Result<Vec<Check>, Error> {
    let live = &config.live;
    let all = links::links().await?;
    let (interfaces, mut checks) = interface::select(live, all.clone())?;
    let tables = flow_tables();
    checks.extend(flow_tables::listing(&tables));
    let tables = tables.unwrap_or_default();
    let attached = attached::Attached::new(found);
    let mirrors: BTreeMap<&str, String> = interfaces
        .iter()
        .filter_map(|interface| {
            let before = before.iter().find(|it| it.link.ifindex == interface.link.ifindex);
            Some((interface.link.name.as_str(), Traffic::of(interface, before).describe()?))
        })
        .collect();
    let selection = Selection::new(&live.interfaces)?;
    let links: Vec<_> = all.iter().map(|it| it.link.clone()).collect();
    if let Err(error) = selection.check_joined(&links) {
        let remedy = "correct it: pping does not start with it";
        checks.push(Check::missing(Name::Interfaces, error.to_string(), remedy));
    }
    let ids = interfaces.len() + selection.all_joined().count();
    if ids > live.max_interfaces as usize {
        checks.push(Check::missing(
            Name::Interfaces,
            format!(
                "there are {ids} interfaces, joined ones counted as one more, and --max-interfaces is {}",
                live.max_interfaces
            ),
            format!("--max-interfaces {ids} or more"),
        ));
    }
    let insides = inside::inside(config, &interfaces);
    for (interface, inside) in interfaces.iter().zip(insides) {
        let name = interface.link.name.as_str();
        let mirror = mirrors.get(name);
        let mut of_interface = vec![interface::interface(interface)];
        of_interface.extend(bridge::bridge(interface, &all));
        of_interface.extend(mirror.map(|described| {
            let is_joined = selection.joined(&interface.link).is_some();
            let others = mirrors.keys().copied().filter(|other| *other != name && !is_joined);
            mirror::mirror(interface, described, &others.collect::<Vec<_>>(), live.mirror)
        }));
        of_interface.extend(inside);
        of_interface.extend(flow_tables::flow_table(interface, &all, &tables));
        of_interface.push(attached.xdp(interface, live.ingress));
        of_interface.push(attached.tc(interface));
        let arms = arms::arms(interface, &all, config.arms);
        of_interface.extend(arms.or_else(|| mirror.and_then(|_| mirror::arms(config.arms))));
        of_interface.extend(offloads::offloads(name, live.ingress, mirror.is_some()));
        checks.extend(of_interface.into_iter().map(|check| check.of(name)));
    }
    Ok(checks)
}

/// Makes the configuration. If it has errors, pping cannot run, and the other checks use the command line alone.
///
/// # Errors
/// If the command line is invalid.
fn configuration(loader: &Loader, typed: Arguments) -> Result<(Config, Check), config::Error> {
    match loader.load_without_source() {
        Ok((config, file)) => {
            let found = file.map_or_else(
                || "no file is read".to_owned(),
                |file| format!("{} has no errors", file.display()),
            );
            Ok((config, Check::ok(Name::Configuration, found)))
        }
        Err(error @ (config::Error::Invalid(_) | config::Error::Open { .. })) => {
            let remedy = "correct it (pping config check says the same): pping does not start with it";
            Ok((Config::try_from(typed)?, Check::missing(Name::Configuration, error.to_string(), remedy)))
        }
        Err(error) => Err(error),
    }
}
