/**
 * The Node.js that the packages ship, and that the fleet, its tests and the benchmarks run on beside the machine's own.
 * Its package is what nodejs.org publishes, under another name.
 */
export const NODE_VERSION = '24.21.0';
