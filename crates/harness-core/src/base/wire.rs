//! Enums of plain variants with wire names.

/// Declares an enum whose variants have one explicit wire name each, used by serde, `as_str` and `Display`.
///
/// Public for the crates of this workspace, and not part of the promised API.
#[doc(hidden)]
#[macro_export]
macro_rules! wire_enum {
    (
        $(#[$meta:meta])*
        pub enum $name:ident { $( $(#[$variant_meta:meta])* $variant:ident = $wire:literal ),* $(,)? }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
        pub enum $name { $( $(#[$variant_meta])* #[serde(rename = $wire)] $variant, )* }

        impl $name {
            /// All variants, in order of declaration.
            pub const ALL: [Self; [$($wire),*].len()] = [$(Self::$variant),*];

            /// Parses a wire name.
            pub fn parse(name: &str) -> Option<Self> {
                Self::ALL.into_iter().find(|one| one.as_str() == name)
            }

            /// Returns the wire name.
            pub fn as_str(self) -> &'static str {
                match self { $( Self::$variant => $wire, )* }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}
