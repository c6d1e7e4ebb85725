/** Colours for a terminal only: picocolors takes any CI for one. */
import picocolors from 'picocolors';

const { FORCE_COLOR = '' } = process.env;
const isForced = FORCE_COLOR !== '' || process.argv.includes('--color');

export const hasColours = picocolors.isColorSupported && (isForced || process.stdout.isTTY === true);

export const pc = picocolors.createColors(hasColours);
