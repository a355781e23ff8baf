"""The desk's pages, one file each: addresses, and what is put into their templates."""
