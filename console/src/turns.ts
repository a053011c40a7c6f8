/** Owns the signs that turn the direction of the text around them: shown as escapes where nothing can be set apart. */

/** Signs that turn the direction of what follows them. @source Unicode, `Bidi_Control` */
const directionSigns = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

/** A text with such signs as JSON and JavaScript write them, such as `\u202e`. */
export const withoutTurns = (text: string): string =>
  text.replaceAll(directionSigns, (sign) => String.raw`\u${sign.charCodeAt(0).toString(16).padStart(4, '0')}`);
