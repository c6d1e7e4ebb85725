/** A log that nothing is written to. */
const nothing = () => {};

export const SILENT = { debug: nothing, info: nothing, warn: nothing, error: nothing };
