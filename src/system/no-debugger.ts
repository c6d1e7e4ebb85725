/** A listener prevents that Node.js opens a debugger on SIGUSR1, for every user of the machine. Import it first. */
process.on('SIGUSR1', () => {});
