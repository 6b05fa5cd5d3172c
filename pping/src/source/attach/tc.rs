//! tc.

use std::path::Path;

use aya::programs::{
    LinkOrder, ProgramError, SchedClassifier, TcAttachType,
    tc::{self, NlOptions, SchedClassifierLink, TcAttachOptions, TcError},
};

use super::{
    Held, Hook, Side, innermost,
    pinned::{adopt, pin},
};
use crate::{
    Error,
    source::{
        interfaces::Link,
        load::{self, Kernel},
        pins::Pins,
    },
};

pub(super) fn attach_tc(
    kernel: &mut Kernel,
    link: &Link,
    side: Side,
    pins: Option<&Pins>,
) -> Result<(Hook, Held), Error> {
    let program = load::classifier(&mut kernel.programs, side.program())?;
    let refused = |error: &ProgramError| Error::Attach {
        interface: link.name.clone(),
        hook: "tc",
        reason: innermost(error),
    };
    let path = pins.map(|pins| pins.link(link.ifindex, side.name(), Hook::Tcx.name()));
    if let Some(path) = &path
        && adopt_tc(program, path)
    {
        return Ok((Hook::Tcx, Held::Pinned(path.clone())));
    }
    let tcx = TcAttachOptions::TcxOrder(LinkOrder::default());
    let no_tcx = match program.attach_with_options(&link.name, side.attach_type(), tcx) {
        Ok(id) => {
            let attached = program.take_link(id).map_err(|error| refused(&error))?;
            return Ok((
                Hook::Tcx,
                match path {
                    None => Held::Tc(attached),
                    Some(path) => {
                        pin(attached.try_into(), &path)?;
                        Held::Pinned(path)
                    }
                },
            ));
        }
        Err(error) => error,
    };
    if let Some(path) = path {
        let reason = format!(
            "attaching {} at tc by a link failed ({}); only links can be pinned, which at tc takes Linux 6.6 or newer",
            link.name,
            innermost(&no_tcx)
        );
        return Err(Error::Pin { path, reason });
    }
    tracing::info!("{}: no TCX ({}), using clsact", link.name, innermost(&no_tcx));
    attach_clsact(program, link, side.attach_type())
        .map(|attached| (Hook::Clsact, Held::Tc(attached)))
        .map_err(|error| refused(&error))
}

pub(super) fn adopt_tc(program: &mut SchedClassifier, path: &Path) -> bool {
    adopt(path, |found| {
        let id = program.attach_to_link(SchedClassifierLink::try_from(found)?)?;
        Ok(program.take_link(id)?.try_into()?)
    })
}

fn attach_clsact(
    program: &mut SchedClassifier,
    link: &Link,
    direction: TcAttachType,
) -> Result<SchedClassifierLink, ProgramError> {
    match tc::qdisc_add_clsact(&link.name) {
        Ok(()) | Err(TcError::AlreadyAttached) => {}
        Err(error) => return Err(error.into()),
    }
    let id =
        program.attach_with_options(&link.name, direction, TcAttachOptions::Netlink(NlOptions::default()))?;
    program.take_link(id)
}
