"""The data model: messages, their keys and bodies, types and views, definitions. Nothing here touches a disk."""
