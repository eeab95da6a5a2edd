//! The policy of a new group.

/// A policy that lets the client of these lines do everything, with one rule for each operation so that each can be
/// narrowed.
pub(super) fn of_client(name: &str, client: &str) -> String {
    let rules = RULES.replace("CLIENT", name);
    format!("{HEAD}{FIRST}\n{client}\n{rules}\n{}\n{MORE}", with_approvals(name, "ann"))
}

/// A policy under which nobody may do anything yet.
pub(crate) fn of_nobody() -> String {
    format!("{HEAD}{NOBODY}\n{}\n{MORE}", with_approvals("ann", "ben"))
}

/// What should take the word of somebody else than the client, ready to be taken into force.
fn with_approvals(client: &str, approver: &str) -> String {
    APPROVED.replace("CLIENT", client).replace("APPROVER", approver)
}

const HEAD: &str = "\
# Who may ask this node for what. What no rule allows is refused. Every node decides by its own copy of this file, about every
# request, for itself: k of them have to allow what is to happen. A running node takes a changed file by itself.
#
#   theta policy check policy.toml
#   theta policy explain --policy policy.toml --client client --operation sign --key sign

format = 1
";

const FIRST: &str = "
# The client whose directory theta group init made: its certificate, and the key that it signs changes of keys with.
# More clients: theta client new, theta token new.
";

/// Until there is a client.
const NOBODY: &str = "
# Nobody may ask this node for anything yet. A client is made by whoever it belongs to, who sends the lines that it prints:
#
#   theta client new --name ann --group group.toml
#
# They go here, and then, at k nodes at least, a rule such as this one, without the #:
#
# [[rule]]
# name = \"ann-does-everything\"
# effect = \"allow\"
# clients = [\"ann\"]
# keys = [\"*\"]
# operations = [\"decrypt\", \"decapsulate\", \"sign\", \"sign-digest\", \"flip-coin\", \"keys.list\", \"status\", \"audit.read\",
#               \"policy.read\", \"keys.create\", \"keys.refresh\", \"keys.reshare\", \"keys.rotate\", \"keys.enable\", \"keys.disable\", \"keys.destroy\",
#               \"group.renew\"]
";

const RULES: &str = r#"# What keys are for.
[[rule]]
name = "CLIENT-uses-keys"
effect = "allow"
clients = ["CLIENT"]
keys = ["*"]
operations = ["decrypt", "decapsulate", "sign", "sign-digest", "flip-coin"]

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
operations = ["keys.create", "keys.refresh", "keys.reshare", "keys.rotate", "keys.enable", "keys.disable", "keys.destroy"]

# What members and their operators have signed themselves: their new cards, new machines in their places.
[[rule]]
name = "CLIENT-brings-cards"
effect = "allow"
clients = ["CLIENT"]
keys = ["*"]
operations = ["group.renew"]
"#;

const APPROVED: &str = r#"# A lost share found again. The others compute it for the node that lost it, so that somebody should know that it did: nobody
# recovers a share until there is an approver here, other than this client. At k nodes at least:
#
#   theta approver new --name APPROVER          prints the [[approver]] lines; they go beside the [[client]] lines above
#   then remove the # from this rule:
#
# [[rule]]
# name = "recovering-takes-an-approval"
# effect = "allow"
# clients = ["CLIENT"]
# keys = ["*"]
# operations = ["keys.recover"]
# approvals = { of = ["APPROVER"], need = 1 }
#
#   theta policy check policy.toml
#
# And each time: theta approve --as APPROVER.key --operation keys.recover --key files --node 3 -o APPROVER.approval
#                theta keys recover files --node 3 --approval APPROVER.approval
#
# Who belongs to the group. With members of its own a stolen client would take the group over, so this takes an approval, too; at as
# many nodes as decide:
#
# [[rule]]
# name = "members-take-an-approval"
# effect = "allow"
# clients = ["CLIENT"]
# keys = ["*"]
# operations = ["group.change"]
# approvals = { of = ["APPROVER"], need = 1 }
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
# [[rule]]
# name = "who-looks-after-this-node"
# effect = "allow"
# clients = ["operator"]            # best nobody who also uses keys
# keys = ["*"]
# operations = ["keys.backup", "audit.prune"]     # of the running node: theta keys backup --node, theta audit prune --node
#
# [[signing]]
# name = "heights"                  # one message for each slot, never back, whoever asks
# keys = ["chain"]
# slot = "claimed"
# order = "increasing"
"#;

#[cfg(test)]
mod tests {
    use theta_names::Operation;
    use theta_policy::{Answer, Policy};
    use theta_statements::{Ask, UnixTime};

    use super::*;

    /// A new node's policy refuses everything, and says how to let somebody in.
    #[test]
    fn a_node_without_clients_refuses_everybody() {
        let text = of_nobody();
        Policy::parse(&text, "policy.toml").unwrap();
        let lines = "[[client]]\nname = \"ann\"\ncertificates = [\"".to_owned() + &"0a".repeat(32) + "\"]\n";
        let from = text.find("# [[rule]]\n# name = \"ann").unwrap();
        let to = from + text[from..].find("\n\n").unwrap();
        let rule = text[from..to].replace("# ", "").replace("#  ", "");
        let policy = Policy::parse(&[&text[..from], &lines, &rule, &text[to..]].concat(), "policy.toml").unwrap();
        // The rule that stands there to be taken allows what the client of a group on one machine may do.
        let of_client = Policy::parse(&of_client("ann", &lines), "policy.toml").unwrap();
        for operation in Operation::ALL {
            let ask = Ask { key: Some("files"), ..Ask::new("g", operation) };
            let answer = |policy: &Policy| policy.explain("ann", &ask, UnixTime(0)).answer;
            assert_eq!(answer(&policy), answer(&of_client), "{operation}");
        }
    }

    /// What stands there to be taken into force is right as it stands, also at a node that has no client yet.
    #[test]
    fn a_recovery_takes_an_approver() {
        recovery_takes("client", "ann", |lines| of_client("client", lines));
        recovery_takes("ann", "ben", |lines| of_nobody().replacen("format = 1\n", &format!("format = 1\n{lines}"), 1));
    }

    fn recovery_takes(client: &str, approver: &str, policy: impl Fn(&str) -> String) {
        let lines = format!(
            "[[client]]\nname = \"{client}\"\ncertificates = [\"{}\"]\n[[approver]]\nname = \"{approver}\"\nkey = \"ed25519:\
             d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a\"\n",
            "0a".repeat(32)
        );
        let text = policy(&lines);
        let from = text.find("# [[rule]]\n# name = \"recovering").unwrap();
        let to = from + text[from..].find("#\n#   theta policy check").unwrap();
        let rule = text[from..to].replace("# ", "");
        let policy = Policy::parse(&[&text[..from], &rule, &text[to..]].concat(), "policy.toml").unwrap();
        let ask = Ask { key: Some("files"), ..Ask::new("g", Operation::KeysRecover) };
        let explained = policy.explain(client, &ask, UnixTime(0));
        assert_eq!(explained.answer, Answer::Deny);
        assert_eq!(explained.conditions[0].condition, format!("1 approvals of {approver}"));
    }

    #[test]
    fn the_client_may_do_everything_but_take_keys_out_recover_shares_change_members_and_shorten_the_log() {
        let lines = "[[client]]\nname = \"client\"\ncertificates = [\"".to_owned() + &"0a".repeat(32) + "\"]\n";
        let policy = Policy::parse(&of_client("client", &lines), "policy.toml").unwrap();
        for operation in Operation::ALL {
            let ask = Ask { key: Some("files"), ..Ask::new("g", operation) };
            let answer = policy.explain("client", &ask, UnixTime(0)).answer;
            let offline = matches!(operation, Operation::KeysExport | Operation::KeysImport | Operation::KeysBackup);
            // What the operator of one node does, and somebody who has stolen this client's identity should not.
            let needs_more =
                offline || matches!(operation, Operation::KeysRecover | Operation::AuditPrune | Operation::GroupChange);
            assert_eq!(answer == Answer::Allow, !needs_more, "{operation}");
        }
    }
}
