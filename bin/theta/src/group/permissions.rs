//! The policy that a group begins with.

/// A policy under which the client of these lines may do everything, rule by rule, so that each can be narrowed.
pub(super) fn of_client(name: &str, client: &str) -> String {
    let rules = RULES.replace("CLIENT", name);
    format!("{HEAD}\n{client}\n{rules}\n{MORE}")
}

const HEAD: &str = "\
# Who may ask this node for what. What no rule allows is refused. Every node decides by its own copy of this file, about every
# request, for itself: k of them have to allow what is to happen. A running node takes a changed file by itself.
#
#   theta policy check policy.toml
#   theta policy explain --policy policy.toml --client client --operation sign --key sign

format = 1

# The client whose directory theta group init made: its certificate, and the key that it signs changes of keys with.
# More clients: theta client new, theta token new.
";

const RULES: &str = r#"# What keys are for.
[[rule]]
name = "CLIENT-uses-keys"
effect = "allow"
clients = ["CLIENT"]
keys = ["*"]
operations = ["decrypt", "decapsulate", "sign", "flip-coin"]

# Looking, without touching.
[[rule]]
name = "CLIENT-looks"
effect = "allow"
clients = ["CLIENT"]
keys = ["*"]
operations = ["keys.list", "status", "audit.read", "policy.read"]

# New keys, new shares, new holders, states.
[[rule]]
name = "CLIENT-keeps-keys"
effect = "allow"
clients = ["CLIENT"]
keys = ["*"]
operations = ["keys.create", "keys.refresh", "keys.reshare", "keys.recover", "keys.rotate", "keys.enable", "keys.disable", "keys.destroy"]
"#;

const MORE: &str = r#"# Examples of what else can be said. The first allow rule that is about a request decides, and a deny rule beats them all:
#
# [[rule]]
# name = "mail-gateway"
# effect = "allow"
# clients = ["gateway"]
# keys = ["mail-*"]
# operations = ["decapsulate"]
# labels = ["inbox/"]               # ciphertexts whose label begins so
# rate = "100/min"
#
# [[rule]]
# name = "destroying-takes-two"     # before any rule that allows it without
# effect = "allow"
# clients = ["client"]
# keys = ["*"]
# operations = ["keys.destroy"]
# approvals = { of = ["ann", "ben", "carl"], need = 2 }     # theta approver new, theta approve
#
# [[signing]]
# name = "heights"                  # one message for each slot, never back, whoever asks
# keys = ["chain"]
# slot = "claimed"
# order = "increasing"
"#;

#[cfg(test)]
mod tests {
    use theta_policy::{Answer, Ask, Operation, Policy, UnixTime};

    use super::*;

    #[test]
    fn the_client_may_do_everything_but_take_keys_out() {
        let lines = "[[client]]\nname = \"client\"\ncertificates = [\"".to_owned() + &"0a".repeat(32) + "\"]\n";
        let policy = Policy::parse(&of_client("client", &lines), "policy.toml").unwrap();
        for operation in Operation::ALL {
            let ask = Ask { key: Some("files"), ..Ask::new("g", operation) };
            let answer = policy.explain("client", &ask, UnixTime(0)).answer;
            let offline = matches!(operation, Operation::KeysExport | Operation::KeysImport | Operation::KeysBackup);
            assert_eq!(answer == Answer::Allow, !offline, "{operation}");
        }
    }
}
