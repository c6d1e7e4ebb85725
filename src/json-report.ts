/** The JSON of the commands: one envelope, indented. */
import { printableJson } from './printable.ts';

/** While it stays the same, keys are only added. */
export const JSON_VERSION = 2;

export const jsonReport = (fields: object): string => `${printableJson({ version: JSON_VERSION, ...fields }, 2)}\n`;
