/**
 * Node.js opens a debugger on SIGUSR1, for every user of the machine: a listener prevents it. The first import of each
 * entry point.
 */
process.on('SIGUSR1', () => {});
