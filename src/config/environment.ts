/** Owns the only look at the process's environment variables. */

/** The variables as they were at the start. */
export const environment: Readonly<Record<string, string | undefined>> = { ...process.env };
