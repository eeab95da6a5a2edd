//! How messages travel.

/// How a message travels between two members, or must travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Channel {
    /// From one member to one other, authenticated and encrypted. What is meant for all goes to each.
    Private,
    /// To all alike, authenticated, as far as an honest sender goes; whoever listens can read it.
    Broadcast,
    /// Through agreed, totally ordered broadcast: the same to all, in one order, whoever sends it.
    Ordered,
}

impl Channel {
    /// Whether a message that must travel by `demanded` may come by this channel. An encrypted line takes what is for all as well,
    /// and a total order what needs none; nothing else keeps a secret, and nothing else is in order.
    #[must_use]
    pub const fn carries(self, demanded: Self) -> bool {
        matches!(
            (self, demanded),
            (Self::Private, Self::Private | Self::Broadcast)
                | (Self::Broadcast, Self::Broadcast)
                | (Self::Ordered, Self::Broadcast | Self::Ordered)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::Channel::{self, Broadcast, Ordered, Private};

    #[test]
    fn what_a_channel_carries() {
        let all = [Private, Broadcast, Ordered];
        let carried = |channel: Channel| all.map(|demanded| channel.carries(demanded));
        assert_eq!(carried(Private), [true, true, false]);
        assert_eq!(carried(Broadcast), [false, true, false]);
        assert_eq!(carried(Ordered), [false, true, true]);
    }
}
