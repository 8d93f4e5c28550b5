//! Object-safe twins of the ports.

/// Declares the object-safe twin of a port and implements it for every implementor: each `async` method boxes its future
/// (references live for `'a`), the others are called directly. A twin's methods have separate names, so that both traits
/// can be in scope.
///
/// Public for the crates of this workspace that have ports, and not part of the promised API.
#[doc(hidden)]
#[macro_export]
macro_rules! twin {
    ($twin:ident of $port:ident {
        $(async fn $boxed:ident = $asynchronous:ident($($arg:ident: $type:ty),*) -> $out:ty;)*
        $(fn $named:ident = $plain:ident($($plain_arg:ident: $plain_type:ty),*) $(-> $plain_out:ty)?;)*
    }) => {
        #[doc = concat!("Object-safe twin of [`", stringify!($port), "`], implemented for every implementor.")]
        #[doc(hidden)]
        pub trait $twin: Send + Sync {
            $(fn $boxed<'a>(&'a self, $($arg: $type),*) -> std::pin::Pin<Box<dyn Future<Output = $out> + Send + 'a>>
            where
                Self: 'a;)*
            $(fn $named(&self, $($plain_arg: $plain_type),*) $(-> $plain_out)?;)*
        }

        impl<T: $port> $twin for T {
            $(fn $boxed<'a>(&'a self, $($arg: $type),*) -> std::pin::Pin<Box<dyn Future<Output = $out> + Send + 'a>>
            where
                Self: 'a,
            {
                // Made where it stays: a future holds its request, and is large.
                let future = Box::write(Box::new_uninit(), self.$asynchronous($($arg),*));
                Box::into_pin(future)
            })*
            $(fn $named(&self, $($plain_arg: $plain_type),*) $(-> $plain_out)? {
                self.$plain($($plain_arg),*)
            })*
        }
    };
}
