//! Presignatures, and signatures, where all holders but one may stand together against it: among exactly k holders of a key that ceremonies shared
//! by Shamir's polynomial. MASCOT where they may lie, Semi-OT where they all follow the protocol.
//!
//! The holders' shares times their Lagrange coefficients add up to x. With MASCOT each puts its summand into the black box, unseen; with Semi-OT it is
//! its share there as it is. Then x G is opened and must be X: whoever put in anything else has made another key, and the program ends before
//! anything was computed from it. `spec/ecdsa.md`, "Dishonest majority" and "Passive security", has the arguments.

use theta_groups::{Group, Secret};
use theta_names::{Epoch, ShareIndex};

use super::{
    Message, Presigned, Presigning,
    curve::Curve,
    key::{KeyIdentity, KeyShare, Sharing},
    presignature::{common_seeds, meet, of_all, sign_first, tuples},
};
use crate::{BlackBox, Cheats, Mascot, MascotSetUps, Party, SemiOt, SemiOtSetUps, SetUpRoom, Shared, Stop};

/// In so many rounds the parties of [`presign_dishonest`] find that they mean the same and have begun together. Messages of later rounds come of what is
/// hidden: whoever falls silent then may know that a check fails, and be the only one.
pub const ROUNDS_TO_MEET: u16 = 3;

/// What holders compare first names the program, by these labels. A program that sends anything else than before, or in other lengths, takes a new number:
/// a holder of another release then means something else, and goes no further. With one label its messages would be false, and an honest set of
/// holders in quarantine. (2: a name of two set-ups beside the session's bytes. 3: x / k by a fixed factor, and pads of 256 bits. 4: nonces of masked products. An owner
/// is compared only where one is named, which it was not before programs that sign made presignatures beside: no new number for that.)
const MASCOT: &str = "theta/ecdsa/presigning/mascot/v4";
/// See [`MASCOT`].
const SEMI_OT: &str = "theta/ecdsa/presigning/semi-ot/v3";

/// Makes presignatures among exactly k holders of a key, all of whom sign with each of them; and signs a digest with one tuple more if one is
/// given. All but one of the holders may cheat: the honest ones have right presignatures or none.
///
/// First all compare what they mean to do; an honest holder goes on only if all others, the honest ones among them, mean the same, digest and
/// session included. So the tuple that signs at once signs what all honest ones have agreed on.
///
/// # Errors
/// [`Stop`]; [`Stop::Cheated`] names the phase. After it whoever runs this must not start again with the same holders by itself: each run
/// lets a cheater guess once more.
pub async fn presign_dishonest<G: Curve>(
    party: Party,
    setting: Presigning<G>,
    set_ups: &SetUps,
) -> Result<Presigned<G>, Stop> {
    meet(&party, MASCOT, &setting).await?;
    let (summand, rest) = summand(&party, setting)?;
    let black_box = Mascot::<G>::on(&party, &set_ups.mascot, &rest.holders).await?;
    let secret = black_box.input_summands(&summand).await?;
    drop(summand);
    let presigned = presign_on(&black_box, secret, rest).await?;
    black_box.end_well();
    Ok(presigned)
}

/// As [`presign_dishonest`], with passive security: all but one of the holders may put together what they have seen. One that does not follow the
/// protocol may learn the key without being noticed. Holders that mean the other security go no further than the comparison.
///
/// # Errors
/// As [`presign_dishonest`].
pub async fn presign_semi_ot<G: Curve>(
    party: Party,
    setting: Presigning<G>,
    set_ups: &SetUps,
) -> Result<Presigned<G>, Stop> {
    meet(&party, SEMI_OT, &setting).await?;
    let (summand, rest) = summand(&party, setting)?;
    let black_box = SemiOt::<G>::on(&party, &set_ups.semi_ot, &rest.holders).await?;
    let secret = Shared::<SemiOt<G>>::from_cells([[*summand.expose()]]);
    drop(summand);
    let presigned = presign_on(&black_box, secret, rest).await?;
    // Nothing but a right signature says that the transfers were: a program that signs nothing leaves no set-up.
    if presigned.signature.is_some() {
        black_box.end_well();
    }
    Ok(presigned)
}

/// What programs of one epoch of a key leave to later ones of the same holders, at one holder and in memory alone. They serve no other key or epoch, and
/// go with the epoch.
#[derive(Debug)]
pub struct SetUps {
    mascot: MascotSetUps,
    semi_ot: SemiOtSetUps,
    cheats: Cheats,
}

impl SetUps {
    /// None yet, of a key of which these cheats are known.
    #[must_use]
    pub fn knowing(cheats: &Cheats) -> Self {
        Self { mascot: MascotSetUps::knowing(cheats), semi_ot: SemiOtSetUps::knowing(cheats), cheats: cheats.clone() }
    }

    /// Who was found to cheat by a message: programs on these set-ups note it, and are told.
    #[must_use]
    pub const fn cheats(&self) -> &Cheats {
        &self.cheats
    }

    /// From now on they are counted in this room, with those of a node's other keys.
    pub fn count_in(&self, room: &SetUpRoom) {
        self.mascot.count_in(room);
        self.semi_ot.count_in(room);
    }

    /// Says what day it is, in days since 1970: set-ups that are used count as of that day.
    pub fn note_day(&self, day: u32) {
        self.mascot.note_day(day);
        self.semi_ot.note_day(day);
    }

    /// Wipes what was used last before this day. Says whether there was anything.
    pub fn wipe_before(&self, day: u32) -> bool {
        self.mascot.wipe_before(day) | self.semi_ot.wipe_before(day)
    }

    /// Wipes what is of these holders, for programs that have been offered it as well.
    pub fn wipe_of(&self, holders: &[ShareIndex]) {
        self.mascot.wipe_of(holders);
        self.semi_ot.wipe_of(holders);
    }

    /// This holder has cheated, as all programs of the key are told; whatever it has a part in is wiped, and nothing is kept with it any more.
    pub fn wipe_with(&self, cheat: ShareIndex) {
        self.cheats.note(cheat);
        self.mascot.wipe_with(cheat);
        self.semi_ot.wipe_with(cheat);
    }

    /// How many are of use.
    #[must_use]
    pub fn ready(&self) -> usize {
        self.mascot.ready() + self.semi_ot.ready()
    }
}

impl Default for SetUps {
    fn default() -> Self {
        Self::knowing(&Cheats::default())
    }
}

/// What a batch is for, without the share.
struct Rest<G: Group> {
    holders: Vec<ShareIndex>,
    epoch: Epoch,
    public_key: G::Element,
    count: usize,
    now: Option<Message>,
    owner: Option<ShareIndex>,
}

/// This party's summand of x, and the rest.
fn summand<G: Curve>(party: &Party, setting: Presigning<G>) -> Result<(Secret<G::Scalar>, Rest<G>), Stop> {
    let Presigning { holders, epoch, public_key, share, session, count, digest, owner, .. } = setting;
    if owner.is_some_and(|owner| !holders.contains(&owner)) {
        return Err(Stop::Input("the owner is no holder of the program"));
    }
    let coefficient = theta_sharing::coefficients_at_zero::<G::Scalar>(&holders)
        .ok()
        .filter(|coefficients| coefficients.len() == party.n())
        .and_then(|coefficients| coefficients.get(party.position()).copied())
        .ok_or(Stop::Input("the holders are not those of the program"))?;
    let summand = Secret::new(*share.expose() * coefficient);
    let now = digest.map(|digest| Message { digest, session });
    Ok((summand, Rest { holders, epoch, public_key, count, now, owner }))
}

/// Presignatures and the signature, on a black box that shares additively and has `[x]`, if it is the secret of the public key.
async fn presign_on<G: Curve, B: BlackBox<Group = G, Cell = [G::Scalar; W]>, const W: usize>(
    black_box: &B,
    secret: Shared<B>,
    rest: Rest<G>,
) -> Result<Presigned<G>, Stop> {
    let Rest { holders, epoch, public_key, count, now, owner } = rest;
    let opened = black_box.open_points(&secret.part(0..1).convert()).await?;
    if opened.first() != Some(&public_key) {
        return Err(Stop::Cheated("the holders' shares are not those of the public key"));
    }
    let key = KeyShare::of(secret, KeyIdentity { public: public_key, sharing: Sharing::of(black_box, epoch) });

    let party = black_box.party();
    let (first, tuples) = tuples(black_box, &key, count, now).await?;
    let mut presignatures = Vec::with_capacity(tuples.len());
    if !tuples.is_empty() {
        let seeds = common_seeds(party).await?;
        let made = tuples.into_iter().enumerate();
        presignatures
            .extend(made.filter_map(|(at, tuple)| of_all((&holders, owner), party.position(), at, tuple, &seeds)));
    }
    Ok(Presigned { presignatures, signature: sign_first(black_box, &key, first).await? })
}
