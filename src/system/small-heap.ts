/**
 * Keeps the heap small: files pass through in pieces. New objects never get more room than at the start, and the collector
 * runs when the heap has grown by half. Imported before all that needs memory.
 */
import v8 from 'node:v8';

v8.setFlagsFromString('--semi-space-growth-factor=1');
v8.setFlagsFromString('--heap-growing-percent=50');
