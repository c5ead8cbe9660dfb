// The bundler takes a file with this suffix for another module.
declare module '*token.js?reload' {
  export function takeToken(): string | undefined;
  export function encryption(): string;
}
