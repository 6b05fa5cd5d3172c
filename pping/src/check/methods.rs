//! Lists the methods that pping would use.

use pping_common::method::{Method, Methods};

use super::{name::Name, report::Check};

/// Names the methods that are on, and those that are off. Both are as configured, so the status is always ok.
pub(super) fn methods(methods: Methods) -> Check {
    let (on, off): (Vec<Method>, Vec<Method>) =
        Method::ALL.into_iter().partition(|&method| methods.has(method));
    let names = |methods: Vec<Method>| methods.into_iter().map(Method::name).collect::<Vec<_>>().join(", ");
    let mut found = if off.is_empty() { "all".to_owned() } else { names(on) };
    if methods.has_both() {
        found.push_str("; tcp-seq beside tcp-ts");
    }
    if !off.is_empty() {
        found.push_str("; not measured: ");
        found.push_str(&names(off));
    }
    Check::ok(Name::Methods, found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_are_named_whether_on_or_off() {
        let found = |wanted| methods(wanted).found;
        assert_eq!(found(Methods::ALL), "all");
        assert_eq!(found(Methods::ALL.with_seq_always()), "all; tcp-seq beside tcp-ts");
        assert_eq!(
            found(Methods::ALL.without(Method::QuicSpin).without(Method::Dns)),
            "tcp-ts, icmp-echo, tcp-seq, tcp-handshake, quic-handshake; not measured: dns, quic-spin"
        );
    }
}
