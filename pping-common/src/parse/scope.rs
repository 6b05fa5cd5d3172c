//! Which packets are measured.

use crate::{limits::MAX_DNS_PORTS, method::Methods};

/// Which packets are measured. Fixed when the programs are loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Scope {
    /// Methods to measure by. Only their packets are parsed.
    pub methods: Methods,
    /// Ports that DNS servers listen on; 0 is none.
    pub dns_ports: [u16; MAX_DNS_PORTS],
}

impl Scope {
    /// All methods, and DNS on its standard port.
    pub const ALL: Self = Self::of(Methods::ALL);

    /// Creates a scope of these methods, with DNS on its standard port.
    pub const fn of(methods: Methods) -> Self {
        let mut dns_ports = [0; MAX_DNS_PORTS];
        dns_ports[0] = crate::limits::DNS_PORT;
        Self { methods, dns_ports }
    }

    /// Whether a port is that of a DNS server.
    #[inline(always)]
    #[expect(
        clippy::manual_contains,
        reason = "that looks at blocks of ports, which the verifier follows less easily"
    )]
    pub(super) fn is_dns(&self, port: u16) -> bool {
        port != 0 && self.dns_ports.iter().any(|&dns| dns == port)
    }
}

const _: () = assert!(size_of::<Scope>() == 16);
