/** Keeps the heap small, as files pass through in pieces. Imported before all that needs memory. */
import v8 from 'node:v8';

v8.setFlagsFromString('--semi-space-growth-factor=1');
v8.setFlagsFromString('--heap-growing-percent=50');
