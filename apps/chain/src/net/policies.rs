//! Who may ask the nodes for what: each validator its own node alone.

use std::{fs, path::Path};

use theta::exit::Failure;
use theta_network::Identity;
use toml::{Table, Value};

use super::{KEY, ORDERED_KEY, UNORDERED_KEY};
use crate::validator::write_secret;

/// Makes a validator's client and lets it, and nobody else, open orders of this chain at its own node. Whoever made the group keeps the
/// right to make keys and to look.
pub(super) fn admit_own_validator(group: &Path, number: u16, client: &Path, chain: &str) -> Result<(), Failure> {
    let name = format!("validator-{number}");
    let identity = Identity::generate(&name).map_err(Failure::internal)?;
    fs::create_dir_all(client).map_err(|error| Failure::writing(client, &error))?;
    let members = group.join(format!("node-{number}/group.toml"));
    let text = fs::read_to_string(&members).map_err(|error| Failure::reading(&members, &error))?;
    let put = |file: &str, text: &str| {
        let path = client.join(file);
        fs::write(&path, text).map_err(|error| Failure::writing(&path, &error))
    };
    put("group.toml", &text)?;
    put("client.crt", &identity.certificate_pem)?;
    write_secret(&client.join("client.key"), identity.key_pem.as_bytes())?;

    let file = group.join(format!("node-{number}/policy.toml"));
    let text = fs::read_to_string(&file).map_err(|error| Failure::reading(&file, &error))?;
    let mut policy: Table = text.parse().map_err(Failure::internal)?;
    let clients = policy.get_mut("client").and_then(Value::as_array_mut);
    let clients = clients.ok_or_else(|| Failure::internal("a policy of a new group without its client"))?;
    let operator = clients.first().and_then(|client| client.get("name")).and_then(Value::as_str).map(ToOwned::to_owned);
    let operator = operator.ok_or_else(|| Failure::internal("a client without a name"))?;
    let validator =
        [("name", Value::from(name.as_str())), ("certificates", vec![identity.fingerprint.to_string()].into())];
    clients.push(Value::Table(table(validator)));
    let rules = vec![
        Value::Table(table([
            ("name", "own-validator-opens-what-is-ordered".into()),
            ("effect", "allow".into()),
            ("clients", vec![name].into()),
            ("keys", vec![KEY.to_owned()].into()),
            ("operations", vec!["decapsulate".to_owned()].into()),
            ("labels", vec![format!("theta-chain/{chain}/")].into()),
        ])),
        Value::Table(table([
            ("name", "operator-makes-keys".into()),
            ("effect", "allow".into()),
            ("clients", vec![operator.clone()].into()),
            ("keys", vec!["*".to_owned()].into()),
            ("operations", ["keys.create", "keys.list", "status", "audit.read"].map(ToOwned::to_owned).to_vec().into()),
        ])),
        Value::Table(table([
            ("name", "operator-signs".into()),
            ("effect", "allow".into()),
            ("clients", vec![operator].into()),
            ("keys", vec![ORDERED_KEY.to_owned(), UNORDERED_KEY.to_owned()].into()),
            ("operations", vec!["sign".to_owned()].into()),
        ])),
    ];
    let slots = |name: &str, key: &str, race: &str| {
        let keys = vec![key.to_owned()];
        Value::Table(table([
            ("name", name.into()),
            ("keys", keys.into()),
            ("slot", "claimed".into()),
            ("race", race.into()),
        ]))
    };
    let signing = vec![slots("first-ordered", ORDERED_KEY, "ordered"), slots("first-heard", UNORDERED_KEY, "void")];
    policy.insert("signing".to_owned(), Value::Array(signing));
    policy.insert("rule".to_owned(), Value::Array(rules));
    name_host(&group.join(format!("node-{number}/node.toml")), &format!("validator-{number}"))?;
    let text = toml::to_string(&policy).map_err(Failure::internal)?;
    fs::write(&file, text).map_err(|error| Failure::writing(&file, &error))
}

/// The validator is the host of the node beside it.
fn name_host(file: &Path, client: &str) -> Result<(), Failure> {
    let text = fs::read_to_string(file).map_err(|error| Failure::reading(file, &error))?;
    let text = format!("{text}\n[order]\nclient = \"{client}\"\n");
    fs::write(file, text).map_err(|error| Failure::writing(file, &error))
}

fn table<const N: usize>(fields: [(&str, Value); N]) -> Table {
    fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}
