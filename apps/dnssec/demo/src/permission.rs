//! What the policies of nodes let the name server do: sign what the operator's agent consents to.

use std::path::Path;

use serde_json::Value;
use theta::exit::Failure;

/// Who asks the nodes to sign, as their policies call it.
pub(crate) const NAME_SERVER: &str = "name-server";
/// Its client file, in the directory of all.
pub(crate) const NAME_SERVERS_CLIENT: &str = "name-server.client";

/// Makes the name server's client; what policies have to say of it. `theta` runs a command with these words, in the directory of all.
pub(crate) fn new_client(theta: impl Fn(&[&str]) -> Result<String, Failure>) -> Result<String, Failure> {
    let group = "group/node-1/group.toml";
    let words = ["client", "new", "--name", NAME_SERVER, "--group", group, "--output", NAME_SERVERS_CLIENT, "--json"];
    let made: Value = serde_json::from_str(&theta(&words)?).map_err(Failure::internal)?;
    let lines = made.get("policy").and_then(Value::as_str);
    Ok(lines.ok_or_else(|| Failure::internal("a new client without lines for policies"))?.to_owned())
}

/// The rules for the name server at a node whose operator's agent listens at this socket.
pub(crate) fn rules(socket: &Path) -> String {
    // As TOML has texts.
    RULES.replace("SOCKET", &toml::Value::from(socket.to_string_lossy().into_owned()).to_string())
}

const RULES: &str = r#"[[agent]]
name = "zone"
socket = SOCKET
timeout_ms = 20000

[[rule]]
name = "zone"
effect = "allow"
clients = ["name-server"]
keys = ["zone-*"]
operations = ["sign", "sign-digest"]
agent = "zone"

[[rule]]
name = "name-server-looks"
effect = "allow"
clients = ["name-server"]
keys = ["*"]
operations = ["keys.list", "status"]
"#;
