//! `theta coin` of several names.

use bytes::Bytes;
use theta_schemes::Purpose;

use super::{Coin, CoinArgs, check_coin_name};
use crate::{
    connect::Provenance,
    exit::{Failure, Several},
    output::Output,
};

/// Draws a coin for each name. One that fails fails alone.
pub(super) fn coins(args: &CoinArgs, output: Output) -> Result<(), Failure> {
    if args.proof.is_some() {
        return Err(Failure::Usage("--proof is for one coin: name no more, or take the proofs from --json".to_owned()));
    }
    args.names.iter().try_for_each(|name| check_coin_name(name))?;
    let session = args.client.open_with(&args.approvals)?;
    let key = args.key.as_deref();
    let key = session.look_up(key, |keyring| keyring.choose(key, Purpose::Coin))?.asked();
    let names: Vec<Bytes> = args.names.iter().map(|name| Bytes::copy_from_slice(name.as_bytes())).collect();
    let answers = session.block_on(session.client().flip_coins(&key, &names))?;
    let mut several = Several::new(names.len());
    for (name, answer) in args.names.iter().zip(answers) {
        match answer {
            Ok(answer) => {
                let provenance = Provenance::new(&key, &answer);
                provenance.warn_of_culprits();
                let (value, proof) = (hex::encode(&answer.result.value), hex::encode(&answer.result.proof));
                let coin = Coin { name: name.clone(), value, proof, provenance };
                output.result(&coin, |out| writeln!(out, "{}  {name}", coin.value))?;
            }
            Err(error) => several.note(format_args!("{name:?}"), error.into())?,
        }
    }
    several.end()
}
