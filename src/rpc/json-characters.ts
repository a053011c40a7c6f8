/** Owns the characters that JSON is made of, as code units and as bytes alike. */

/** `"` */
export const quote = 0x22;
/** `\\` */
export const backslash = 0x5c;
/** `,` */
export const comma = 0x2c;
/** `:` */
export const colon = 0x3a;
/** `{` */
export const openBrace = 0x7b;
/** `}` */
export const closeBrace = 0x7d;
/** `[` */
export const openBracket = 0x5b;
/** `]` */
export const closeBracket = 0x5d;

/** True for JSON's white space. */
export const isSpace = (code: number | undefined): boolean =>
  code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09;
