//! The list of the groups that keys are on, and what a plan needs of a group: its name, and the lengths of its encodings.

use theta_groups::{Group, Scalar};

/// An array of what `make!` makes of each group's type.
macro_rules! of_all_groups {
    ($make:ident) => {
        [
            $make!(theta_groups::Ristretto255),
            $make!(theta_groups::Ed25519),
            $make!(theta_groups::Ed448),
            $make!(theta_groups::P256),
            $make!(theta_groups::Secp256k1),
            $make!(theta_groups::bls12_381::G1),
            $make!(theta_groups::bls12_381::G2),
            $make!(theta_groups::bn254::G1),
            $make!(theta_groups::bn254::G2),
        ]
    };
}
pub(super) use of_all_groups;

macro_rules! sizes {
    ($group:ty) => {
        GroupSizes::of::<$group>()
    };
}

const ALL: [GroupSizes; 9] = of_all_groups!(sizes);

/// A group by its name, and the lengths of its encodings in bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct GroupSizes {
    name: &'static str,
    element_len: usize,
    scalar_len: usize,
}

impl GroupSizes {
    const fn of<G: Group>() -> Self {
        Self { name: G::NAME, element_len: G::ENCODED_LEN, scalar_len: G::Scalar::ENCODED_LEN }
    }

    /// The group of that name, as [`Group::NAME`] has it.
    pub(super) fn named(name: &str) -> Option<Self> {
        ALL.into_iter().find(|group| group.name == name)
    }

    /// The group's name.
    pub(super) const fn name(self) -> &'static str {
        self.name
    }

    /// Length of an encoded element in bytes.
    pub(super) const fn element_len(self) -> usize {
        self.element_len
    }

    /// Length of an encoded scalar in bytes.
    pub(super) const fn scalar_len(self) -> usize {
        self.scalar_len
    }
}
